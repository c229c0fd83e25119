import { expect, it } from "vitest";
import type { Database } from "../../../src/adapters/database/connection.ts";
import type { AgentName } from "../../../src/base/lib/ids.ts";
import { Events, type StoredEvent } from "../../../src/domain/tables/events.ts";
import { recall } from "../../../src/domain/tables/recall-query.ts";
import { Renders } from "../../../src/domain/tables/renders.ts";
import { Rooms } from "../../../src/domain/tables/rooms.ts";
import { Sights } from "../../../src/domain/tables/sight.ts";
import type { Look } from "../../../src/domain/tables/sight-query.ts";
import { onEachDatabase } from "../../support/database.ts";
import { newEventId, newRoom, newUser } from "../../support/rows.ts";

// Statements are planned once, while their tables may be empty: see src/database/planning.ts.
onEachDatabase((database) => {
  const explained = async (ask: (database: Database) => Promise<unknown>): Promise<string> => {
    const { sql } = database();
    const plans: string[] = [];
    const run = async (statement: (given: typeof sql) => Promise<unknown>) => {
      const { string } = await (statement(sql) as ReturnType<typeof sql>).describe();
      plans.push(JSON.stringify(await sql.unsafe(`explain (generic_plan) ${string}`)));
      return [];
    };
    await ask({ ...database(), run: run as Database["run"] });
    return plans.join("\n");
  };
  const [roomId, sender, eventId] = [newRoom(), newUser(), newEventId()];
  const event = { roomId, sender, eventId, position: 1 } as StoredEvent;
  const look: Look = {
    agent: "helper" as AgentName,
    userId: sender,
    owner: sender,
    here: roomId,
    scratchpad: undefined,
    turnId: 1,
    always: [eventId],
    first: [sender],
    since: null,
    rooms: 10,
    eventsPerRoom: 1_000,
    eventsAtFirst: 200,
    membersPerRoom: 50,
    entries: 1_000,
    isLogged: true,
    base: undefined,
    reading: {},
  };

  it.each<[string, (database: Database) => Promise<unknown>, readonly string[]]>([
    [
      "the place before another",
      (db) => new Events(db).positionBefore(roomId, 1),
      ["events_history", "events_not_shown"],
    ],
    [
      "what was before a join",
      (db) => new Rooms(db).adopt(roomId, { members: [], state: [] }, 1),
      ["events_history", "events_not_shown"],
    ],
    [
      "whether something later was answered",
      (db) => new Events(db).hasAnsweredLater({ name: "helper", userId: sender }, event),
      ["events_event_id_key", "events_history", "events_not_shown", "wakes_of_event"],
    ],
    [
      "whether somebody spoke later of whom nothing is known",
      (db) => new Events(db).hasAnsweredUnknown({ userId: sender }, event),
      ["events_event_id_key", "events_history", "events_not_shown"],
    ],
    [
      "who spoke in a thread",
      (db) => new Events(db).hasSpokenIn(roomId, eventId, sender),
      ["events_event_id_key", "events_in_thread"],
    ],
    [
      "what a conversation sees",
      (db) => new Sights(db).see(look).catch(() => {}),
      ["events_event_id_key", "events_history", "events_pkey", "wakes_unread"],
    ],
    [
      "whether something in a render was redacted",
      (db) =>
        new Renders(db).keep({
          turnId: 1,
          n: 0,
          system: "",
          prompt: "",
          eventIds: [eventId],
          tools: "",
          toolset: "",
          subAgent: null,
        }),
      ["events_redacted"],
    ],
    ["the last edit", (db) => new Events(db).editOf(event), ["events_replaces"]],
  ])("reads by an index that has little else: %s", async (_what, ask, indexes) => {
    const plan = await explained(ask);
    const read = plan.match(/(?<=(?:Scan using|Scan Backward using|Index Scan on|Seq Scan on) )(events|wakes)\w*/g);
    expect([...new Set(read)].toSorted()).toEqual(indexes);
  });

  it("recalls without reading a whole table, however large", async () => {
    const { sql } = database();
    await sql`
      insert into interactions (kind, room_id, place, tool, sender, sources, speaker, text, importance)
      select 'observation', ${roomId}, n, 'message', ${sender}, array[${roomId}], 'a', 'a: word' || n, 0.3
      from generate_series(1, 20000) n`;
    await sql`analyze interactions`;
    for (const vector of [undefined, { model: "m", numbers: [1, 0] }]) {
      const who = { agent: "helper" as AgentName, userId: sender, owner: sender, here: roomId };
      const plan = await explained((db) => recall(db, who, { words: "word", named: [sender], limit: 5, vector }));
      const scans = plan.split(/(?=(?:Scan using|Scan Backward using|Scan on) \w+)/).slice(1);
      const ofTables = scans.filter((scan) =>
        /^\S+ (?:Backward )?(?:using \w+ )?on (?:interactions|interaction_vectors|events)\b/.test(scan),
      );
      expect(ofTables.length).toBeGreaterThan(5);
      expect(ofTables.filter((scan) => !/Index Cond|Recheck Cond|Order By/.test(scan))).toEqual([]);
    }
  });
});
