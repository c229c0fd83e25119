import { type Backlog, backlogOf } from "../../adapters/database/backlog.ts";
import type { Database } from "../../adapters/database/connection.ts";
import type { AgentName, RoomId } from "../../base/lib/ids.ts";

/** A turn that a process carries out. */
interface TurnAtWork {
  readonly agent: AgentName;
  readonly roomId: RoomId;
  readonly roomName: string | null;
  readonly reason: string;
  readonly seconds: number;
}

/** An operation that waits for a person's yes. */
interface OpenQuestion {
  readonly id: number;
  readonly agent: AgentName;
  readonly tool: string;
  /** Until the question expires. */
  readonly secondsLeft: number;
}

/** The whole bridge at one moment. Lists are cut, counts are not. */
export interface Overview {
  readonly agents: number;
  readonly paused: readonly AgentName[];
  readonly turns: number;
  readonly atWork: readonly TurnAtWork[];
  readonly questions: number;
  readonly waiting: readonly OpenQuestion[];
  readonly schedules: number;
  /** Until the next of them is due; null where there is none. */
  readonly nextInSeconds: number | null;
  readonly backlog: Backlog;
}

/** Entries of each list. */
const listed = 10;

/** Reads what all agents are doing: for whoever looks, never on the way of a message. */
export async function overviewOf(database: Database): Promise<Overview> {
  const [found, backlog] = await Promise.all([
    database.run(
      (sql) => sql<Omit<Overview, "backlog">[]>`
        with present as (
          select name, paused_at from agents where deleted_at is null
        ), at_work as (
          select id, agent, room_id, reason, started_at from turns where state = 'running'
        ), asked as (
          select id, agent, tool, expires_at from operations where state = 'asked' and decision is null
        ), planned as (
          select next_at from schedules where next_at is not null and removed_at is null
        )
        select
          (select count(*) from present) as agents,
          (select coalesce(jsonb_agg(name order by name), '[]') from present where paused_at is not null) as paused,
          (select count(*) from at_work) as turns,
          (select coalesce(jsonb_agg(jsonb_build_object('agent', agent, 'roomId', room_id, 'reason', reason,
              'roomName', (select content->>'name' from room_state s where s.room_id = first.room_id and s.type = 'm.room.name'),
              'seconds', extract(epoch from now() - started_at)::float8) order by id), '[]')
            from (select * from at_work order by id limit ${listed}) first) as "atWork",
          (select count(*) from asked) as questions,
          (select coalesce(jsonb_agg(jsonb_build_object('id', id, 'agent', agent, 'tool', tool,
              'secondsLeft', extract(epoch from expires_at - now())::float8) order by id), '[]')
            from (select * from asked order by id limit ${listed}) first) as waiting,
          (select count(*) from planned) as schedules,
          (select extract(epoch from min(next_at) - now())::float8 from planned) as "nextInSeconds"`,
    ),
    backlogOf(database),
  ]);
  const [row] = found;
  if (!row) throw new Error("the overview was not read");
  return { ...row, backlog };
}
