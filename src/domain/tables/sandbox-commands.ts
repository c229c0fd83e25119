import type { Database, Json } from "../../adapters/database/connection.ts";
import type { Conversation, RoomId, UserId } from "../../base/lib/ids.ts";

/**
 * Why a command ended: by itself; at its time limit; by a person, or with its sandbox; since memory ran out; since files took
 * too much room. `lost`: it was under way when its sandbox was started anew, and what became of it is not known.
 */
type CommandReason = "exit" | "timeout" | "stopped" | "memory" | "disk" | "lost";

/** One stream of a command's output, as it is shown: without control characters, and cut in the middle. */
export interface ShownOutput {
  readonly text: string;
  /** True if something of it is left out. */
  readonly isCut: boolean;
}

/** End of a command, with its output. */
export interface CommandOutcome {
  readonly reason: CommandReason;
  readonly code?: number | undefined;
  readonly signal?: number | undefined;
  /** Bytes of its output. */
  readonly bytes?: number | undefined;
  readonly stdout?: ShownOutput | undefined;
  readonly stderr?: ShownOutput | undefined;
}

/** A command that is about to be sent. */
export interface CommandDraft extends Conversation {
  /** Equal for one call, however often it is run; the runner knows the command by it. */
  readonly key: string;
  readonly boot: string;
  readonly command: string;
  readonly requesters: readonly UserId[];
  /** Sources that the caller has been shown: the sandbox may hold them from now on. */
  readonly sources: readonly RoomId[];
  readonly isBackground: boolean;
}

export interface CommandRow extends CommandDraft {
  readonly number: number;
  /** Sources of the command and of all that its sandbox may hold. */
  readonly sources: readonly RoomId[];
  /** Place in history of its operation. */
  readonly place: number;
  readonly startedAt: Date;
  readonly outcome: CommandOutcome | null;
}

const commandColumns = `key, agent, room_id as "roomId", number, boot, command, requesters, is_background as "isBackground",
  started_at as "startedAt", outcome, sources, place`;

/** For so long it is remembered which commands have run. */
const keptFor = "30 days";
const attempts = 3;

/** Commands in sandboxes: what was sent, and what came of it. */
export class SandboxCommandTable {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  /** Writes down that a command is about to be sent; one that was written down before is returned as it is. */
  async begin(draft: CommandDraft): Promise<CommandRow> {
    const { agent, boot, command, isBackground, key, requesters, roomId, sources } = draft;
    for (let attempt = 1; attempt <= attempts; attempt++) {
      const [row] = await this.#database.run(
        (sql) => sql<CommandRow[]>`
          with numbered as (
            update sandboxes s set commands = commands + 1, used_at = now(),
              sources = (select coalesce(array_agg(distinct x), '{}') from unnest(s.sources || ${[...sources]}::text[]) x)
            where agent = ${agent} and room_id = ${roomId} and not exists (select 1 from sandbox_commands where key = ${key})
            returning commands, s.sources
          ), added as (
            insert into sandbox_commands (key, agent, room_id, number, boot, command, requesters, is_background, sources, place)
            select ${key}, ${agent}, ${roomId}, commands, ${boot}, ${command}, ${[...requesters]}::text[], ${isBackground},
              sources, coalesce((select o.place from operations o where o.key = ${key}), 0)
            from numbered on conflict (key) do nothing
            returning *
          )
          select ${sql.unsafe(commandColumns)} from (select * from added union all select * from sandbox_commands where key = ${key}) c`,
      );
      // Another process may have written it just now.
      if (row) return row;
    }
    throw new Error(`there is no sandbox of ${agent} in ${roomId}`);
  }

  /** Keeps how a command has ended; the first word counts. Returns that. */
  async finish(key: string, outcome: CommandOutcome): Promise<CommandOutcome> {
    const [row] = await this.#database.run(
      (sql) => sql<{ outcome: CommandOutcome }[]>`
        with ended as (
          update sandbox_commands c set outcome = ${sql.json(outcome as unknown as Json)}::jsonb, ended_at = now(),
            sources = array(select unnest(c.sources) union
              select unnest(s.sources) from sandboxes s where s.agent = c.agent and s.room_id = c.room_id)
          where key = ${key} and outcome is null returning outcome
        )
        select coalesce((select outcome from ended), (select outcome from sandbox_commands where key = ${key})) as outcome`,
    );
    return row?.outcome ?? outcome;
  }

  /** Takes back a command that was not started. */
  async withdraw(key: string): Promise<void> {
    await this.#database.run((sql) => sql`delete from sandbox_commands where key = ${key} and outcome is null`);
  }

  async find(key: string): Promise<CommandRow | undefined> {
    const [row] = await this.#database.run(
      (sql) => sql<CommandRow[]>`select ${sql.unsafe(commandColumns)} from sandbox_commands where key = ${key}`,
    );
    return row;
  }

  /** The conversation's command of this number, the newest where an older sandbox has had one, too. */
  async findNumbered({ agent, roomId }: Conversation, number: number): Promise<CommandRow | undefined> {
    const [row] = await this.#database.run(
      (sql) => sql<CommandRow[]>`
        select ${sql.unsafe(commandColumns)} from sandbox_commands
        where agent = ${agent} and room_id = ${roomId} and number = ${number} order by started_at desc limit 1`,
    );
    return row;
  }

  /** Finds those among these keys that are commands of the conversation. */
  ofConversation({ agent, roomId }: Conversation, keys: readonly string[]): Promise<CommandRow[]> {
    return this.#database.run(
      (sql) => sql<CommandRow[]>`
        select ${sql.unsafe(commandColumns)} from sandbox_commands
        where agent = ${agent} and room_id = ${roomId} and key = any (${[...keys]}::text[]) order by number`,
    );
  }

  /** Finds commands that go on though their operation has ended: its turn was stopped, or given up. */
  findDeserted(): Promise<CommandRow[]> {
    return this.#database.run(
      (sql) => sql<CommandRow[]>`
        select ${sql.unsafe(commandColumns)} from sandbox_commands c
        where c.outcome is null and not c.is_background
          and exists (select 1 from operations o where o.key = c.key and o.state in ('failed', 'interrupted'))`,
    );
  }

  async forgetOld(): Promise<void> {
    await this.#database.run(
      (sql) => sql`
        delete from sandbox_commands where outcome is not null and started_at < now() - ${keptFor}::interval`,
    );
  }
}
