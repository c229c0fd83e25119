import { beforeEach, expect, it } from "vitest";
import type { Database } from "../../../src/adapters/database/connection.ts";
import { systemClock } from "../../../src/base/lib/clock.ts";
import { createLog } from "../../../src/base/lib/log.ts";
import { Events } from "../../../src/domain/tables/events.ts";
import { Outbox } from "../../../src/domain/tables/outbox.ts";
import { pendingIn } from "../../../src/domain/tables/pending.ts";
import { Judge } from "../../../src/edges/routing/judge.ts";
import { Throttle } from "../../../src/edges/routing/throttle.ts";
import { sensor as message } from "../../../src/edges/sensors/message.ts";
import type { Sensor } from "../../../src/engine/operations/sensor.ts";
import { onEachDatabase } from "../../support/database.ts";
import { mindOf } from "../../support/mind.ts";
import { addAgent, newRoom, newUser, rightsOf, setMember, storeEvent } from "../../support/rows.ts";

onEachDatabase((database) => {
  /** Wakes that a reply to the agent makes, where these sensors notice it; `asked` is the database that they ask. */
  const wakesOf = async (sensors: readonly Sensor[], asked: Database = database()) => {
    const [ann, ben] = [newUser(), newUser()];
    const rights = await rightsOf(database(), { test: "chat" });
    const mind = mindOf(database(), { modelUrl: "http://127.0.0.1:1/v1", rights, tools: [] });
    const judge = new Judge({
      ...mind,
      events: new Events(asked),
      outbox: new Outbox(database()),
      reactions: { react: async () => {}, reply: async () => false },
      approvals: { withdraw: async () => {} },
      sensors,
      throttle: new Throttle(() => ({ requester: 1_000, room: 1_000 }), systemClock),
      commands: { isOne: () => false, handle: async () => undefined },
      bot: {
        onInvite: async () => [],
        onMessage: async () => [],
        onUnknownAgent: async () => [],
        onClosedDoor: async () => [],
      },
      serverName: "test",
      log: createLog("trace", { write: (line) => void lines.push(JSON.parse(line)) }),
    });
    const agent = await addAgent(database());
    const roomId = newRoom();
    for (const member of [ann, ben, agent.userId]) await setMember(database(), roomId, member, "join");
    const said = await storeEvent(database(), { roomId, sender: agent.userId });
    const content = {
      msgtype: "m.text",
      body: "sure?",
      "m.relates_to": { "m.in_reply_to": { event_id: said.eventId } },
    };
    const reply = await storeEvent(database(), { roomId, sender: ann, content });
    const pending = (await pendingIn(database(), roomId)).find(({ eventId }) => eventId === reply.eventId);
    if (!pending) throw new Error("the reply does not wait");
    const { wakes = [] } = await judge.judge(pending, await mind.rooms.context(roomId));
    return wakes.map(({ reason }) => reason);
  };
  /** Lines that were logged. */
  let lines: Record<string, unknown>[];
  beforeEach(() => {
    lines = [];
  });
  const broken: Sensor = {
    name: "broken",
    description: "nothing",
    notice: async () => {
      throw new Error("broken");
    },
  };

  it("a sensor that fails leaves the event to the others", async () => {
    expect(await wakesOf([broken, message])).toEqual(["new event"]);
    expect(await wakesOf([broken])).toEqual([]);
    expect(lines.filter(({ sensor }) => sensor === "broken").map(({ msg }) => msg)).toEqual(
      Array(2).fill("a sensor failed"),
    );
  });

  it("what a sensor notices is logged: that it does, and for those who want to know everything, what", async () => {
    await wakesOf([message]);
    const noticed = { sensor: "message", agent: expect.any(String), event: expect.stringMatching(/^\$/) };
    expect(lines).toEqual([
      expect.objectContaining({ ...noticed, level: 20, reason: "new event" }),
      expect.objectContaining({ ...noticed, level: 10, body: "sure?" }),
    ]);
    expect(JSON.stringify(lines[0])).not.toContain("sure?");
  });

  it("an event of which a sensor cannot ask the database is judged again", async () => {
    const away: Database = { ...database(), run: () => Promise.reject(new Error("too many connections")) };
    await expect(wakesOf([message], away)).rejects.toThrow("too many connections");
  });
});
