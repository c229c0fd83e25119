import { it } from "vitest";
import { answerEach } from "../support/answers.ts";
import { startWithoutHomeserver } from "../support/outages.ts";
import { Stage } from "../support/stage.ts";

const minute = 60_000;

// A file of its own: it waits while the others work.
it(
  "a bridge that starts 10 minutes before its homeserver waits, is not ready, and is when it comes",
  async () => {
    const stage = await Stage.set({ database: "postgres" });
    try {
      stage.model.onEvery(answerEach);
      const ann = await stage.user("ann");
      await stage.bridge.start();
      await startWithoutHomeserver(stage, ann, 10 * minute);
    } finally {
      await stage.strike();
    }
  },
  15 * minute,
);
