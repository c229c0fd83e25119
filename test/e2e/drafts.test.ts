import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { isDraft } from "../../src/adapters/matrix/draft.ts";
import { isObject } from "../../src/base/lib/json.ts";
import { sendsTo } from "../support/faults.ts";
import { eventually } from "../support/poll.ts";
import { type ModelRequest, type Reply, type Step, toolName, userText } from "../support/scripted-model.ts";
import { agentOf, callsOf, roomOf } from "../support/sight.ts";
import { Stage } from "../support/stage.ts";
import type { Message, TestUser } from "../support/user.ts";

/** Text of a draft, or of an edit of one. */
const saysNow = ({ body, content }: Message): unknown => {
  const edited = content["m.new_content"];
  return isObject(edited) ? edited.body : body;
};

/** An answer in pieces: each comes when it is asked for. */
class SlowAnswer {
  readonly #pieces: readonly string[];
  readonly #asked: PromiseWithResolvers<void>[];

  constructor(...pieces: readonly string[]) {
    this.#pieces = pieces;
    this.#asked = pieces.map(() => Promise.withResolvers<void>());
  }

  readonly reply = (): Step[] =>
    this.#pieces.flatMap((text, index) => [{ text }, { wait: this.#asked[index]?.promise as Promise<void> }]);

  /** Lets piece `index`, from 0, be followed by the next; behind the last the answer is whole. */
  goOn(index: number): void {
    this.#asked[index]?.resolve();
  }
}

describe("an answer that is streamed", () => {
  let stage: Stage;
  let ann: TestUser;
  beforeAll(async () => {
    stage = await Stage.set({
      database: "postgres",
      agents: {
        helper: { answer: "text", streaming: true, reply: "mention" },
        other: { answer: "text", reply: "mention" },
      },
    });
    ann = await stage.user("ann");
  });
  beforeEach(async () => {
    if (!stage.bridge.isRunning) await stage.bridge.start();
  });
  afterAll(() => stage.strike());

  const asked = async (reply: Reply, others: readonly string[] = []) => {
    const room = await stage.room(ann, [], ["helper", ...others]);
    stage.model.on((request) => roomOf(request) === room, reply);
    await ann.mention(room, stage.agentId(), "tell me");
    return room;
  };
  const isMember = async (room: string, { id }: TestUser) => {
    const rows = await stage.query(
      `select 1 from members where room_id = '${room}' and user_id = '${id}' and membership = 'join'`,
    );
    return rows.length > 0;
  };
  const shown = (room: string, text: string) =>
    ann.waitForMessage(room, (message) => isDraft(message.content) && saysNow(message) === text);
  /** Texts of the agent's messages on the homeserver; empty for one that was taken away. */
  const left = async (room: string) =>
    (await ann.messages(room)).filter(({ sender }) => sender !== ann.id).map(({ body }) => body);
  /** Two agents who answer at the same time do so in any order. */
  const isTakenBack = async (room: string, ...said: readonly string[]) => {
    const look = async () => {
      const texts = await left(room);
      return texts.length > said.length && texts.filter(Boolean).toSorted().join() === said.toSorted().join();
    };
    await eventually(look, { what: "the draft to be taken back" });
  };

  it("is shown while it grows, and is one message that notifies in the end", async () => {
    const answer = new SlowAnswer("It *is", " so*", ", I think.");
    const room = await asked(answer.reply);
    const { content } = await shown(room, "It *is");
    expect(content.msgtype).toBe("m.notice");
    answer.goOn(0);
    const edit = await shown(room, "It *is so*");
    expect(edit.content["m.new_content"]).toMatchObject({ msgtype: "m.notice", formatted_body: "It <em>is so</em>" });
    answer.goOn(1);
    answer.goOn(2);
    const last = await ann.waitForMessage(room, ({ body }) => body === "It *is so*, I think.");
    expect(last.content.msgtype).toBe("m.text");
    await isTakenBack(room, "It *is so*, I think.");
    await stage.check();
  });

  it("has no draft when it is there at once", async () => {
    const room = await asked("At once.");
    await ann.waitForMessage(room, ({ body }) => body === "At once.");
    await stage.check();
    expect(await left(room)).toEqual(["At once."]);
  });

  it("is not seen by agents before it is whole", async () => {
    const answer = new SlowAnswer("Half", " and half.");
    const room = await asked((request) => (isOthers(request) ? "I saw it." : answer.reply()), ["other"]);
    await shown(room, "Half");
    /** How often the other agent, which is asked, sees the word. */
    const seenByOther = async (question: string) => {
      await ann.mention(room, stage.agentId("other"), question);
      const request = await stage.model.request((one) => isOthers(one) && userText(one).includes(question));
      return userText(request).match(/Half/g)?.length ?? 0;
    };
    expect(await seenByOther("And now?")).toBe(0);
    answer.goOn(0);
    await shown(room, "Half and half.");
    expect(await seenByOther("And by now?")).toBe(0);
    answer.goOn(1);
    await ann.waitForMessage(room, ({ body }) => body === "Half and half.");
    await isTakenBack(room, "I saw it.", "I saw it.", "Half and half.");
    expect(await seenByOther("And in the end?")).toBe(1);
    await stage.check();
  });

  it("shows no text that a function call follows any longer than until it comes", async () => {
    const goOn = Promise.withResolvers<void>();
    const called = Promise.withResolvers<void>();
    const room = await asked((request): Step[] => {
      if (callsOf(request).length > 0) return ["It is empty."];
      const call = { call: toolName(request, "FS_Index"), arguments: { path: "agents:/helper/" } };
      return ["Let me look.", { wait: goOn.promise }, call, { wait: called.promise }];
    });
    await shown(room, "Let me look.");
    goOn.resolve();
    await shown(room, "…");
    called.resolve();
    await isTakenBack(room, "It is empty.");
    await stage.check();
  });

  it("that is stopped is taken back, and so is an edit that was on its way", async () => {
    const answer = new SlowAnswer("No", "body wants this.");
    const room = await asked(answer.reply);
    await shown(room, "No");
    const isEdit = sendsTo(room);
    const edit = stage.toHomeserver.hold({ when: isEdit, times: 1 });
    answer.goOn(0);
    await edit.reached();
    await ann.say(room, "!stop");
    await eventually(async () => (await left(room))[0] === "", { what: "the draft to be taken back" });
    edit.lift();
    await ann.waitForMessage(room, ({ body }) => body === "* Nobody wants this.");
    await eventually(async () => !(await left(room)).join().includes("wants"), { what: "the edit to be taken back" });
    await stage.check();
  });

  it("whose model fails for good is taken back", async () => {
    const fails = Promise.withResolvers<void>();
    let attempt = 0;
    const room = await asked((): Step[] =>
      ++attempt === 1 ? ["Soon I", { wait: fails.promise }, { isCut: true }] : [{ status: 401 }],
    );
    await shown(room, "Soon I");
    fails.resolve();
    const apology = await ann.waitForMessage(room, ({ body }) => body.includes("my model does not answer"));
    await isTakenBack(room, apology.body);
    await stage.check();
  });

  it("survives the bridge that is killed in it, as one message", async () => {
    const answer = new SlowAnswer("Before", " and after.");
    const room = await asked(answer.reply);
    await shown(room, "Before");
    await stage.bridge.kill();
    await stage.bridge.start();
    answer.goOn(0);
    answer.goOn(1);
    await ann.waitForMessage(room, ({ body }) => body === "Before and after.", { within: 30_000 });
    await isTakenBack(room, "Before and after.");
    await stage.check();
  });

  it("is taken back when somebody comes who may not read what it is made from, and is said anew for them", async () => {
    const vault = await stage.directRoom(ann);
    await ann.say(vault, "the safe is at 4711", { msgtype: "m.notice" });
    const ben = await stage.user("ben");
    const answer = new SlowAnswer("The safe", " is at 4711.");
    const room = await asked((request) =>
      userText(request).includes("4711") ? answer.reply() : "Hello, both of you.",
    );
    await shown(room, "The safe");
    await ann.invite(room, ben.id);
    await ben.waitForMembership(room, "invite");
    await ben.join(room);
    await eventually(() => stage.model.requests.length > 0 && isMember(room, ben), {
      what: "the bridge to hear of ben",
    });
    answer.goOn(0);
    answer.goOn(1);
    await ann.waitForMessage(room, ({ body }) => body === "Hello, both of you.");
    await isTakenBack(room, "Hello, both of you.");
    expect((await ben.messages(room)).map(({ body }) => body).join()).not.toContain("4711");
    await stage.check();
  });

  it("goes on encrypted in a room that is encrypted meanwhile", async () => {
    const answer = new SlowAnswer("In plain", " text.");
    const room = await asked(answer.reply);
    await shown(room, "In plain");
    await ann.api("PUT", `v3/rooms/${encodeURIComponent(room)}/state/m.room.encryption/`, {
      body: { algorithm: "m.megolm.v1.aes-sha2" },
    });
    const isKnown = () =>
      stage.query(`select 1 from room_state where room_id = '${room}' and type = 'm.room.encryption'`);
    await eventually(async () => (await isKnown()).length > 0, { what: "the bridge to know of it" });
    const sealed = async () => {
      const query = { dir: "b", filter: JSON.stringify({ types: ["m.room.encrypted"] }) };
      const { chunk } = await ann.api("GET", `v3/rooms/${encodeURIComponent(room)}/messages`, { query });
      return (chunk as { content: object }[]).filter(({ content }) => "ciphertext" in content).length;
    };
    answer.goOn(0);
    await eventually(async () => (await sealed()) > 0, { what: "an encrypted edit" });
    answer.goOn(1);
    // The draft and its edits are taken back; the whole answer is left.
    await eventually(async () => (await left(room)).every((text) => text === "") && (await sealed()) === 1, {
      what: "the draft to be taken back",
    });
    await stage.check();
  });
});

const isOthers = (request: ModelRequest): boolean => agentOf(request).includes("agent_other");
