import { describe, expect, it } from "vitest";
import { readMessage } from "../../../src/adapters/matrix/message.ts";
import type { EventId, RoomId, UserId } from "../../../src/base/lib/ids.ts";
import type { Agent } from "../../../src/domain/agents/agent.ts";
import type { StoredEvent } from "../../../src/domain/tables/events.ts";
import { sensor } from "../../../src/edges/sensors/message.ts";
import type { Scene } from "../../../src/engine/operations/sensor.ts";
import { makeAgent } from "../../support/agents.ts";

const other = makeAgent("other", { displayName: "Other One" });
const [ann, bob] = ["@ann:test", "@bob:test"] as [UserId, UserId];
const thread = { rel_type: "m.thread", event_id: "$thread" };

interface Situation {
  readonly content: Readonly<Record<string, unknown>>;
  readonly reply?: "auto" | "mention" | "always";
  readonly humans?: number;
  /** Agents beside the one that is asked. */
  readonly others?: readonly Agent[];
  readonly isDirect?: boolean;
  /** Who has sent the event that is replied to. */
  readonly repliedTo?: UserId;
  readonly spokeInThread?: boolean;
}

/** True if the agent `helper` takes the message as meant for it. Default: in a room of two humans. */
const isMeant = async (situation: Situation): Promise<boolean> => {
  const { reply = "auto", humans = 2, others = [], isDirect = false, repliedTo, spokeInThread = false } = situation;
  const agent = makeAgent("helper", { displayName: "Nice Helper", reply });
  const content = { msgtype: "m.text", body: "hello", ...situation.content };
  const agentsHere = [agent, ...others];
  const event: StoredEvent = {
    seq: 1,
    number: 1,
    eventId: "$asked" as EventId,
    roomId: "!room:test" as RoomId,
    type: "m.room.message",
    stateKey: null,
    sender: ann,
    sentAt: new Date(0),
    content,
    replaces: null,
    redacts: null,
    position: 1,
    source: "push",
    editedAt: null,
    isEncrypted: false,
    media: null,
  };
  const scene: Scene = {
    agent,
    event,
    message: readMessage(event),
    agentsHere,
    room: {
      kind: "chat",
      state: {},
      agents: agentsHere.map(({ userId }) => ({ userId, membership: "join", isDirect, since: 0 })),
      humans,
      hasBotJoined: false,
      creators: [],
    },
    senderOf: async () => repliedTo,
    hasSpokenIn: async () => spokeInThread,
  };
  return (await sensor.notice?.(scene)) !== undefined;
};

const mentions = (...userIds: string[]) => ({ "m.mentions": { user_ids: userIds } });
const helper = "@agent_helper:test" as UserId;

describe("in company", () => {
  it.each<[string, Situation, boolean]>([
    ["a message to nobody", { content: {} }, false],
    ["a mention of the agent", { content: mentions(helper) }, true],
    ["a mention of the agent and another", { content: mentions(other.userId, helper), others: [other] }, true],
    ["a mention of a person", { content: mentions(bob) }, false],
    ["a mention of everybody in the room", { content: { "m.mentions": { room: true } } }, false],
    ["the full id at the start", { content: { body: `${helper}: hello` } }, true],
    ["the display name at the start", { content: { body: "nice helper, hello" } }, true],
    ["the agent's name at the start, after an @", { content: { body: "@helper hello" } }, true],
    ["the name at the start although mentions are empty", { content: { body: "helper: hi", ...mentions() } }, true],
    [
      "the name at the start although another is mentioned",
      { content: { body: "helper: hi", ...mentions(bob) } },
      false,
    ],
    ["the name in the middle", { content: { body: "ask the helper" } }, false],
    ["the beginning of a longer name", { content: { body: "helpers are nice" } }, false],
    ["the id of a namesake on another server", { content: { body: `${helper}.org hello` } }, false],
    [
      "a reply to the agent",
      { content: { "m.relates_to": { "m.in_reply_to": { event_id: "$x" } } }, repliedTo: helper },
      true,
    ],
    [
      "a reply to somebody else",
      { content: { "m.relates_to": { "m.in_reply_to": { event_id: "$x" } } }, repliedTo: bob },
      false,
    ],
    ["a thread in which the agent has spoken", { content: { "m.relates_to": thread }, spokeInThread: true }, true],
    ["a thread in which it has not", { content: { "m.relates_to": thread } }, false],
    ["a notice that mentions the agent", { content: { msgtype: "m.notice", ...mentions(helper) } }, false],
    [
      "an edit that mentions the agent",
      {
        content: {
          "m.relates_to": { rel_type: "m.replace", event_id: "$x" },
          "m.new_content": { msgtype: "m.text", body: "x", ...mentions(helper) },
        },
      },
      false,
    ],
    ["no message at all", { content: { body: 7, ...mentions(helper) } }, false],
  ])("%s", async (_what, situation, isExpected) => {
    expect(await isMeant(situation)).toBe(isExpected);
  });
});

describe("alone", () => {
  it.each<[string, Situation, boolean]>([
    ["with one human, every message", { content: {}, humans: 1 }, true],
    ["with one human, a message that mentions a person who is not there", { content: mentions(bob), humans: 1 }, true],
    ["with one human, a notice", { content: { msgtype: "m.notice" }, humans: 1 }, false],
    ["with another agent and one human, a message to nobody", { content: {}, humans: 1, others: [other] }, false],
    [
      "with another agent in its direct room, every message",
      { content: {}, humans: 1, others: [other], isDirect: true },
      true,
    ],
    ["in a direct room that more people have entered", { content: {}, humans: 2, isDirect: true }, false],
  ])("%s", async (_what, situation, isExpected) => {
    expect(await isMeant(situation)).toBe(isExpected);
  });
});

describe("a message to another agent", () => {
  const room = { humans: 1, others: [other], isDirect: true };
  it.each<[string, Situation]>([
    ["mentioned", { ...room, content: mentions(other.userId) }],
    ["addressed by its name", { ...room, content: { body: "Other One: hello" } }],
    ["addressed by its id", { ...room, content: { body: `${other.userId} hello` } }],
    [
      "mentioned in a thread in which this one has spoken",
      { ...room, content: { ...mentions(other.userId), "m.relates_to": thread }, spokeInThread: true },
    ],
    ["mentioned where this one answers always", { ...room, content: mentions(other.userId), reply: "always" }],
  ])("%s is not for this one", async (_what, situation) => {
    expect(await isMeant(situation)).toBe(false);
  });
});

describe("the reply policy", () => {
  it.each<[string, Situation, boolean]>([
    ["always: any message in company", { content: {}, reply: "always", others: [other] }, true],
    ["always: no notice", { content: { msgtype: "m.notice" }, reply: "always" }, false],
    ["mention: no message, even alone with one human", { content: {}, reply: "mention", humans: 1 }, false],
    ["mention: a mention", { content: mentions(helper), reply: "mention" }, true],
    ["mention: its name at the start", { content: { body: "helper, hi" }, reply: "mention" }, true],
    [
      "mention: a reply to it",
      { content: { "m.relates_to": { "m.in_reply_to": { event_id: "$x" } } }, reply: "mention", repliedTo: helper },
      true,
    ],
    [
      "mention: not what stands in its thread",
      { content: { "m.relates_to": thread }, reply: "mention", spokeInThread: true },
      false,
    ],
  ])("%s", async (_what, situation, isExpected) => {
    expect(await isMeant(situation)).toBe(isExpected);
  });
});
