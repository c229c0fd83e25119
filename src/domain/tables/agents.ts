import type { Database, Sql } from "../../adapters/database/connection.ts";
import type { AgentName, Conversation, RoomId, UserId } from "../../base/lib/ids.ts";
import { insertOutbox, type OutboxDraft } from "./outbox.ts";

export interface AgentRow {
  readonly name: AgentName;
  readonly userId: UserId;
  readonly owner: UserId;
  /** Ends the names of the agent's tools, the same for all its life. */
  readonly suffix: string;
  /** The Matrix device under which the agent sends: only then does the homeserver remember transaction ids. */
  readonly deviceId: string;
  readonly isRegistered: boolean;
  /** Digest of the profile that the homeserver was last told. */
  readonly profile: string | null;
  readonly syncToken: string | null;
  readonly thoughtsRoom: RoomId | null;
  /** Seconds without a turn after which the agent wakes by itself; null is never. */
  readonly wakeUpTimerSeconds: number | null;
  /** Since then the agent wakes for nothing. */
  readonly pausedAt: Date | null;
}

/** Agent in the database: its row, and its `agent.json`. */
export interface AgentRecord extends AgentRow {
  /** 0 where the file is not there. */
  readonly fileVersion: number;
  readonly fileText: string | null;
  /** Version of the file that the timer was taken from, or that was there when the agent set its timer itself. */
  readonly timerVersion: number | null;
  /** Timer that stood in the file when it was last taken from there. */
  readonly timerInFile: number | null;
}

const columns = `name, user_id as "userId", owner, suffix, device_id as "deviceId", registered_at is not null as "isRegistered",
  profile, sync_token as "syncToken", thoughts_room as "thoughtsRoom", wake_up_timer_seconds as "wakeUpTimerSeconds",
  paused_at as "pausedAt"`;

/** A query: the agent of this name, or all of them, but for those that were deleted. */
export const agentRecords = (sql: Sql, name: AgentName | null) => sql<AgentRecord[]>`
  select a.*, coalesce(f.version, 0) as "fileVersion", f.text_content as "fileText"
  from (select ${sql.unsafe(columns)}, timer_version as "timerVersion", timer_in_file as "timerInFile" from agents
      where deleted_at is null and (${name}::text is null or name = ${name})) a
    left join files f on f.share = 'agents' and f.path = '/' || a.name || '/agent.json'
  order by a.name`;

/** Expression: the version of the `agent.json` of a row of `agents`; 0 where there is none. */
const settingsVersion = (sql: Sql) => sql`
  coalesce((select f.version from files f where f.share = 'agents' and f.path = '/' || agents.name || '/agent.json'), 0)`;

export class Agents {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  /** Adds an agent that is not there yet; one that is keeps everything. Not added is one that was deleted: `false`. */
  async add(agent: Pick<AgentRow, "name" | "userId" | "owner" | "suffix" | "deviceId">): Promise<boolean> {
    const rows = await this.#database.run(
      (sql) => sql`
        with added as (
          insert into agents (name, user_id, owner, suffix, device_id)
          values (${agent.name}, ${agent.userId}, ${agent.owner}, ${agent.suffix}, ${agent.deviceId})
          on conflict (name) do nothing returning name
        )
        select 1 from added union all select 1 from agents where name = ${agent.name} and deleted_at is null`,
    );
    return rows.length > 0;
  }

  all(): Promise<AgentRecord[]> {
    return this.#read(null);
  }

  async find(name: AgentName): Promise<AgentRecord | undefined> {
    const [record] = await this.#read(name);
    return record;
  }

  #read(name: AgentName | null): Promise<AgentRecord[]> {
    return this.#database.run((sql) => agentRecords(sql, name));
  }

  /** The owners of those of the names that are agents'. */
  async owners(names: readonly string[]): Promise<Map<string, UserId>> {
    const rows = await this.#database.run(
      (sql) => sql<{ name: string; owner: UserId }[]>`
        select name, owner from agents where name = any (${[...names]}::text[])`,
    );
    return new Map(rows.map(({ name, owner }) => [name, owner]));
  }

  async wasDeleted(name: AgentName): Promise<boolean> {
    const rows = await this.#database.run(
      (sql) => sql`select 1 from agents where name = ${name} and deleted_at is not null`,
    );
    return rows.length > 0;
  }

  async markRegistered(name: AgentName): Promise<void> {
    await this.#database.run((sql) => sql`update agents set registered_at = now() where name = ${name}`);
  }

  /** Queues the profile for the homeserver, and remembers that it was: `profile` is its digest. */
  async tellProfile(name: AgentName, profile: string, draft: OutboxDraft): Promise<void> {
    await this.#database.run(
      (sql) => sql`
        with told as (
          update agents set profile = ${profile} where name = ${name} and profile is distinct from ${profile} returning name
        )
        ${insertOutbox(sql, [draft], "told")}`,
    );
  }

  /** Up to where the sweep has read; only after what was found is stored. */
  async sweptTo(name: AgentName, syncToken: string): Promise<void> {
    await this.#database.run((sql) => sql`update agents set sync_token = ${syncToken} where name = ${name}`);
  }

  async thoughtsRoomMade(name: AgentName, roomId: RoomId): Promise<void> {
    await this.#database.run((sql) => sql`update agents set thoughts_room = ${roomId} where name = ${name}`);
  }

  async setOwner(name: AgentName, owner: UserId): Promise<void> {
    await this.#database.run((sql) => sql`update agents set owner = ${owner} where name = ${name}`);
  }

  async setPaused(name: AgentName, isPaused: boolean): Promise<void> {
    await this.#database.run(
      (sql) => sql`
        update agents set paused_at = case when ${isPaused} then coalesce(paused_at, now()) end, last_turn_at = now()
        where name = ${name}`,
    );
  }

  /** Conversations in which the agent is at work. */
  atWork(name: AgentName): Promise<Conversation[]> {
    return this.#database.run(
      (sql) => sql<Conversation[]>`
        select distinct agent, room_id as "roomId" from turns
        where state in ('running', 'parked', 'ready') and agent = ${name}`,
    );
  }

  /**
   * The agent is no more; its name stays taken, and what it still had to do or to say is forgotten. Keys for which it
   * waited are waited for by others of the room.
   */
  async remove(name: AgentName): Promise<void> {
    await this.#database.run(
      (sql) => sql`
        with gone as (
          update agents set deleted_at = coalesce(deleted_at, now()) where name = ${name} returning name, user_id
        ), unrung as (
          update schedules set removed_at = now() where agent in (select name from gone) and removed_at is null
        ), unasked as (
          delete from silences where agent in (select name from gone)
        ), unsaid as (
          update outbox set state = 'failed', error = 'the agent was deleted', settled_at = now()
          where sender in (select user_id from gone) and state = 'pending'
        ), given_up as (
          delete from sealed_events where user_id in (select user_id from gone) returning event_id
        ), tried as (
          update events set routed_at = null, source = case source when 'push' then 'sweep' else source end
          where event_id in (select event_id from given_up)
        )
        delete from wakes where agent in (select name from gone) and turn_id is null`,
    );
  }

  /** Takes away all that the agent knew and was, but for what its calls cost. What it said in rooms is the rooms'. */
  async erase(name: AgentName): Promise<void> {
    await this.#database.run(
      (sql) => sql`
        with mine as (select id from turns where agent = ${name}),
        woken as (delete from wakes where agent = ${name}),
        planned as (delete from schedules where agent = ${name}),
        shown as (delete from renders where turn_id in (select id from mine)),
        thought as (delete from ephemeris where user_id in (select user_id from agents where name = ${name})),
        worked as (delete from turns where agent = ${name}),
        talked as (delete from conversations where agent = ${name}),
        opened as (delete from windows where agent = ${name}),
        called as (delete from operations where agent = ${name}),
        planning as (delete from todos where agent = ${name}),
        known as (delete from knowledge where agent = ${name}),
        offered as (delete from knowledge_offers where agent = ${name}),
        remembered as (delete from interactions where agent = ${name}),
        device as (delete from crypto_machines where user_id in (select user_id from agents where name = ${name})),
        keys as (delete from crypto_rows where user_id in (select user_id from agents where name = ${name})),
        earlier as (
          delete from file_versions where (share = 'agents' and root = ${name})
            or (share = 'rooms' and path like '/%/agents/%' and split_part(path, '/', 4) = ${name})
        )
        delete from files where (share = 'agents' and root = ${name})
          or (share = 'rooms' and path like '/%/agents/%' and split_part(path, '/', 4) = ${name})`,
    );
  }

  /** Sets the timer for as long as the bridge runs, or until another one stands in a later `agent.json`. */
  async setTimer(name: AgentName, seconds: number | null): Promise<void> {
    await this.#database.run(
      (sql) => sql`
        update agents set wake_up_timer_seconds = ${seconds}, timer_version = ${settingsVersion(sql)} where name = ${name}`,
    );
  }

  /** Takes the timer from a version of `agent.json`; nothing is changed once that is done, or where there is a later one. */
  async takeTimer(name: AgentName, seconds: number | null, version: number): Promise<void> {
    await this.#database.run(
      (sql) => sql`
        update agents set timer_version = ${version}, timer_in_file = ${seconds}, wake_up_timer_seconds = case
            when timer_version is null or timer_in_file is distinct from ${seconds} then ${seconds}
            else wake_up_timer_seconds end
        where name = ${name} and timer_version is distinct from ${version} and ${settingsVersion(sql)} = ${version}`,
    );
  }

  /** From now on the timers in the files count. */
  async forgetTimers(): Promise<void> {
    await this.#database.run((sql) => sql`update agents set timer_version = null where timer_version is not null`);
  }

  /** Wakes every agent whose timer has run out, in its home conversation, once whichever process asks. */
  wakeByTimer(): Promise<Conversation[]> {
    return this.#database.run(
      (sql) => sql<Conversation[]>`
        with due as (
          update agents set last_turn_at = now()
          where last_turn_at + make_interval(secs => wake_up_timer_seconds) <= now()
            and paused_at is null and deleted_at is null
          returning name, owner, turns
        )
        insert into wakes (key, agent, room_id, reason, requester, chain)
        select 'timer:' || name || ':' || extract(epoch from now())::text, name, '', 'timer', owner, 'timer:' || name || ':' || turns
        from due
        on conflict (key) do nothing
        returning agent, room_id as "roomId"`,
    );
  }
}
