import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, describe, expect, it } from "vitest";
import { eventually } from "../support/poll.ts";
import { type ModelRequest, userText } from "../support/scripted-model.ts";
import { answer } from "../support/sight.ts";
import { Stage } from "../support/stage.ts";

const waitSeconds = 600;
/** Bridges are started several times, which takes long on a busy machine. */
const patienceMs = 240_000;

describe("silence after a question", () => {
  let stage: Stage;
  afterEach(() => stage.strike());

  const reasonOf = (request: ModelRequest) => /wakeReason="([^"]*)"/.exec(userText(request))?.[1];
  const isQuiet = (request: ModelRequest) => reasonOf(request)?.startsWith("quiet for") === true;
  const quietReasons = () => stage.model.requests.filter(isQuiet).map(reasonOf);
  /** Turns that are not over, and what was said and did not come back as an event yet. */
  const unfinished = `select 1 from turns where state in ('running', 'ready')
    union all select 1 from outbox o where kind = 'message' and not exists (
      select 1 from events e where e.event_id = o.event_id and e.routed_at is not null)`;
  /** The bridge is killed, and started again after so long a time. What this has interrupted ends before. */
  const sleepFor = async (seconds: number) => {
    await stage.bridge.kill();
    while ((await stage.query(unfinished)).length > 0) {
      await stage.bridge.start();
      await sleep(2_000);
      await stage.bridge.kill();
    }
    await stage.query(
      `update silences set since = since - interval '${seconds} seconds', next_at = next_at - interval '${seconds} seconds'`,
    );
    await stage.query(`update rooms set last_shown_at = last_shown_at - interval '${seconds} seconds'`);
    await stage.bridge.start();
  };

  it(
    "wakes the agent once for each wait, twice as long each time, over kill -9; a person's word ends it, and so does !quiet",
    async () => {
      stage = await Stage.set({ database: "postgres", agents: { helper: { followUpAfterSeconds: waitSeconds } } });
      await stage.bridge.start();
      const person = await stage.user("ann");
      const room = await stage.directRoom(person);
      // A turn that was killed in its middle is ended first, and the keeper looks every 30 seconds.
      const said = (body: string) =>
        person.waitForMessage(room, (content) => content.body === body, { within: 60_000 });
      const count = async (body: string) =>
        (await person.messages(room)).filter(({ content }) => content.body === body).length;
      stage.model.on(isQuiet, (request) => answer(request, `Still there after ${reasonOf(request)}?`));
      stage.model.on("paint", (request) => answer(request, "Which colour?"));
      stage.model.on("green", (request) => answer(request, "Fine."));
      stage.model.onEvery((request) => answer(request, "As you like."));
      await person.say(room, "paint it");
      await said("Which colour?");

      await sleepFor(waitSeconds);
      await said("Still there after quiet for 10 minutes?");
      await sleepFor(waitSeconds);
      await sleepFor(waitSeconds);
      await said("Still there after quiet for 20 minutes?");
      expect(quietReasons()).toEqual(["quiet for 10 minutes", "quiet for 20 minutes"]);

      await person.say(room, "green");
      await said("Fine.");
      await sleepFor(10 * waitSeconds);
      await person.say(room, "paint it again");
      await eventually(async () => (await count("Which colour?")) === 2, { what: "the question, once more" });
      expect(quietReasons()).toHaveLength(2);

      await person.say(room, "!status");
      await person.waitForMessage(room, ({ body }) => /speaks up here by itself: after 10 minutes/.test(String(body)));
      await person.say(room, "!quiet 2h");
      await person.waitForMessage(room, ({ body }) =>
        String(body).includes("does not speak up here by itself until 2"),
      );
      await sleepFor(10 * waitSeconds);
      await person.say(room, "!quiet off");
      await person.waitForMessage(room, ({ body }) => String(body).includes("may speak up here again"));
      await person.say(room, "!quiet soon");
      await person.waitForMessage(room, ({ body }) => String(body).includes("30m, 2h or 3d"));
      expect(quietReasons()).toHaveLength(2);
      await stage.check();
    },
    patienceMs,
  );
});
