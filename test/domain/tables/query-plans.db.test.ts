import { expect, it } from "vitest";
import type { Database } from "../../../src/adapters/database/connection.ts";
import { Events, type StoredEvent } from "../../../src/domain/tables/events.ts";
import { Rooms } from "../../../src/domain/tables/rooms.ts";
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
    ["the last edit", (db) => new Events(db).editOf(event), ["events_replaces"]],
  ])("reads by an index that has little else: %s", async (_what, ask, indexes) => {
    const plan = await explained(ask);
    const read = plan.match(/(?<=(?:Scan using|Scan Backward using|Index Scan on|Seq Scan on) )(events|wakes)\w*/g);
    expect([...new Set(read)].toSorted()).toEqual(indexes);
  });
});
