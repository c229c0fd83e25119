import { describe, expect, it } from "vitest";
import type { RoomId, UserId } from "../../../src/base/lib/ids.ts";
import type { Agent } from "../../../src/domain/agents/agent.ts";
import { parseAgentSettings } from "../../../src/domain/agents/settings.ts";
import type { MemoryQuery } from "../../../src/domain/memory/recall.ts";
import type { EventSource } from "../../../src/domain/tables/events.ts";
import { type RecallMoment, recollect, stretchesOf } from "../../../src/engine/sight/recollection.ts";

const here = "!here:test" as RoomId;
const ann = "@ann:test" as UserId;

const message = (body: string, roomId = here) =>
  ({ type: "m.room.message", roomId, sender: ann, eventId: `$${body}`, content: { msgtype: "m.text", body } }) as never;
const todo = (name: string, isDone = false) => ({ number: 1, name, isDone, sources: [], taint: [] });
const now = (text: string) => ({
  share: "rooms",
  path: `/${here}/agents/helper/memory/NOW.md`,
  text,
  chars: text.length,
  size: text.length,
  isTainted: false,
  sources: [],
});

interface Moment {
  readonly isAsked?: boolean;
  readonly news?: RecallMoment["news"];
  readonly seen?: Partial<RecallMoment["seen"]>;
}

/** Questions that a look asks the memory, and the knowledge. */
async function questionsOf(moment: Moment): Promise<{ asked: MemoryQuery | undefined; known: string[] }> {
  let asked: MemoryQuery | undefined;
  const known: string[] = [];
  const find = async (_: unknown, { text }: { readonly text: string }) => {
    known.push(text);
    return [];
  };
  const recall = async (_: unknown, __: unknown, query: MemoryQuery) => {
    asked = query;
    return { found: [], sources: [], taint: [] };
  };
  const settings = parseAgentSettings({}, "agent.json");
  await recollect(
    { memory: { recall }, knowledge: { find } },
    {
      agent: { name: "helper", userId: "@agent_helper:test", owner: ann, settings } as unknown as Agent,
      here,
      isAsked: moment.isAsked ?? false,
      requesters: [],
      news: moment.news ?? [],
      seen: {
        ...{ audience: [], ephemeris: [], events: [], hasKnowledge: true, redacted: [], state: [], todos: [] },
        ...moment.seen,
      },
    },
  );
  return { asked, known };
}

/** Question that a look asks the memory; undefined where it asks nothing. */
const questionOf = async (moment: Moment): Promise<MemoryQuery | undefined> => (await questionsOf(moment)).asked;

describe("what a look recalls", () => {
  it("fits what was said, and nothing else, where somebody has said something", async () => {
    const seen = { todos: [todo("water the plants")] };
    expect(await questionOf({ isAsked: true, news: [message("Where is the vault?")], seen })).toMatchObject({
      text: "Where is the vault?",
      by: ann,
    });
    expect(await questionOf({ isAsked: true, news: [message("thanks")], seen })).toBeUndefined();
  });

  it("asks the knowledge as well, of an agent that has some", async () => {
    const moment = { isAsked: true, news: [message("Where is the vault?")] };
    expect((await questionsOf(moment)).known).toEqual(["Where is the vault?"]);
    const without = await questionsOf({ ...moment, seen: { hasKnowledge: false } });
    expect(without).toMatchObject({ asked: { text: "Where is the vault?" }, known: [] });
  });

  it("fits the open todos and the status of an agent that a timer wakes", async () => {
    const seen = {
      todos: [todo("water the plants"), todo("call the bank", true)],
      state: [now("Status: waits for the offer of Miller\n")],
      events: [message("What a day")],
    };
    const question = await questionOf({ seen });
    expect(question?.text).toBe("Status: waits for the offer of Miller\nwater the plants");
    expect(question?.by).toBeUndefined();
  });

  it("fits the last thing that was said here where it has no plans, and nothing in a silent room", async () => {
    const events = [message("The vault is in Bern"), message("elsewhere", "!other:test" as RoomId)];
    expect((await questionOf({ seen: { events, state: [now("Status: Idle\n")] } }))?.text).toBe("The vault is in Bern");
    expect(await questionOf({})).toBeUndefined();
  });
});

const [a, b] = ["!a:test", "!b:test"] as RoomId[] as [RoomId, RoomId];
const event = (roomId: RoomId, position: number, number: number | null = position, source: EventSource = "push") => ({
  roomId,
  position,
  number,
  source,
});

describe("the history that a look shows", () => {
  it("is one part of each room where no number is missing", () => {
    expect(stretchesOf([event(a, 1), event(b, 7), event(a, 3, 2), event(b, 8), event(a, 9, 3)])).toEqual([
      { roomId: a, first: 1, last: 9 },
      { roomId: b, first: 7, last: 8 },
    ]);
  });

  it("does not reach from an old event that is shown to the newest", () => {
    expect(stretchesOf([event(a, 2), event(a, 50), event(a, 51)])).toEqual([
      { roomId: a, first: 2, last: 2 },
      { roomId: a, first: 50, last: 51 },
    ]);
  });

  it("does not reach over an event without a number", () => {
    expect(stretchesOf([event(a, 1), event(a, 2, null), event(a, 3)])).toHaveLength(3);
  });

  it("does not reach over what may have been said before the history that was read when the agent came", () => {
    const invited = event(a, 1);
    const read = [event(a, 5, 2, "history"), event(a, 6, 3, "history")];
    expect(stretchesOf([invited, ...read, event(a, 7, 4)])).toEqual([
      { roomId: a, first: 1, last: 1 },
      { roomId: a, first: 5, last: 7 },
    ]);
  });
});
