import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { all, textOf } from "../support/elements.ts";
import { eventually } from "../support/poll.ts";
import type { ModelRequest } from "../support/scripted-model.ts";
import { answer, historyOf, roomOf, roomSeen } from "../support/sight.ts";
import { Stage } from "../support/stage.ts";
import type { TestUser } from "../support/user.ts";

describe("the history that an agent sees", () => {
  let stage: Stage;
  let ann: TestUser;
  let ben: TestUser;
  let room: string;
  beforeAll(async () => {
    stage = await Stage.set({ database: "postgres" });
    await stage.bridge.start();
    [ann, ben] = await Promise.all([stage.user("ann"), stage.user("ben")]);
    room = await stage.room(ann, [ben], ["helper"]);
  });
  afterAll(() => stage.strike());

  let asked = 0;
  /** Asks the agent something. @returns what its model was shown */
  const look = async (): Promise<ModelRequest> => {
    const question = `look ${++asked}.`;
    stage.model.on(question, (request) => answer(request, `seen ${question}`));
    await ann.mention(room, stage.agentId(), question);
    await ann.waitForMessage(room, ({ body }) => body === `seen ${question}`);
    const request = stage.model.requests.findLast((candidate) => roomOf(candidate) === room);
    if (!request) throw new Error("no request");
    return request;
  };

  it("has a message as its sender edited it last, marked as edited", async () => {
    const id = await ann.say(room, "I like tee");
    await ann.edit(room, id, "I like te");
    await ann.edit(room, id, "I like tea");
    const messages = all(roomSeen(await look(), room), "message").filter((message) =>
      textOf(message).includes("I like"),
    );
    expect(messages.map(textOf)).toEqual(["I like tea"]);
    expect(messages[0]?.attributes.edited).toBe(true);
  });

  it("has nothing of somebody's edit of another's message", async () => {
    const id = await ann.say(room, "I owe ben 1");
    await ben.edit(room, id, "I owe ben 1000");
    const history = historyOf(await look(), room);
    expect(history).toContain("I owe ben 1");
    expect(history.join()).not.toContain("1000");
  });

  it("has an edit of an earlier message that a later question follows, without another turn for it", async () => {
    await look();
    const before = stage.model.requests.length;
    const [question] = (await ann.messages(room)).filter(({ body }) => body === `look ${asked}.`);
    await ann.edit(room, question?.id ?? "", `look ${asked}. (edited)`);
    const history = historyOf(await look(), room);
    expect(history).toContain(`look ${asked - 1}. (edited)`);
    expect(stage.model.requests).toHaveLength(before + 1);
  });

  it("has nothing of a redacted message, nor have the renders that were kept", async () => {
    const id = await ann.say(room, "the code is 4711");
    expect(historyOf(await look(), room)).toContain("the code is 4711");
    const kept = "select 1 from renders where prompt like '%4711%'";
    expect(await stage.query(kept)).toHaveLength(1);
    await ann.redact(room, id);
    await eventually(async () => (await stage.query(kept)).length === 0, { what: "the kept render to be emptied" });
    const roomNow = roomSeen(await look(), room);
    expect(JSON.stringify(roomNow)).not.toContain("4711");
    expect(await stage.query("select 1 from events where content::text like '%4711%'")).toEqual([]);
  });

  it("keeps a message that somebody without power tried to redact", async () => {
    const id = await ann.say(room, "stays here");
    await expect(ben.redact(room, id)).rejects.toThrow();
    expect(historyOf(await look(), room)).toContain("stays here");
  });

  it("has what was said before the agent came, as it was edited last, and nothing of what was taken back", async () => {
    const joined = room;
    room = await ann.createRoom({ preset: "private_chat", invite: [ben.id] });
    await ben.waitForMembership(room, "invite");
    await ben.join(room);
    await ann.say(room, "the first word");
    const edited = await ann.say(room, "they met at non");
    await ann.redact(room, await ann.say(room, "what a pity"));
    await ann.edit(room, edited, "they met at noo");
    await ben.edit(room, edited, "they met at midnight");
    await ann.edit(room, edited, "they met at noon");
    await ann.invite(room, stage.agentId());
    await ann.waitForMembership(room, "join", stage.agentId());
    const seen = all(roomSeen(await look(), room), "message").filter(
      ({ attributes }) => attributes.sender === ann.id || attributes.sender === ben.id,
    );
    room = joined;
    expect(seen.map((message) => [textOf(message), message.attributes.edited])).toEqual([
      ["the first word", undefined],
      ["they met at noon", true],
      [`look ${asked}.`, undefined],
    ]);
  });
});
