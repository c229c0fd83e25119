import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { say } from "../support/scripted-model.ts";
import { Stage } from "../support/stage.ts";
import type { TestUser } from "../support/user.ts";

describe.each(["embedded", "postgres"] as const)("on the %s database", (database) => {
  let stage: Stage;
  let ann: TestUser;
  beforeAll(async () => {
    stage = await Stage.set({ database });
    await stage.bridge.start();
    ann = await stage.user("ann");
  });
  afterAll(() => stage.strike());

  it("an agent that was invited answers what it is asked, once", async () => {
    stage.model.on("ping", (request) => say(request, room, "pong", { final: true }));
    const room = await stage.directRoom(ann);
    await ann.say(room, "ping");
    await ann.waitForMessage(room, ({ body }) => body === "pong");
    const said = (await ann.messages(room)).map(({ body }) => body);
    expect(said).toEqual(["ping", "pong"]);
    await stage.check();
  });
});
