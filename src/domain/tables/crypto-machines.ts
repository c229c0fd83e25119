import type { Database, Json } from "../../adapters/database/connection.ts";
import { sessionLives } from "../../adapters/database/shards.ts";
import type { AgentName, UserId } from "../../base/lib/ids.ts";
import { NotOwner } from "./crypto-rows.ts";

/** Private keys of an identity, by which people know that a device is the agent's. Never logged, never shown. */
export interface IdentitySeeds {
  readonly master: string;
  readonly selfSigning: string;
  readonly userSigning: string;
}

/** A device as whoever opened it last owns it. */
export interface CryptoMachineRow {
  readonly userId: UserId;
  readonly deviceId: string;
  readonly epoch: number;
  readonly since: string | null;
  readonly isPublished: boolean;
  /** The device remembers nothing, although the homeserver has its keys: the database was restored from a dump. */
  readonly isForgetful: boolean;
  readonly identity: IdentitySeeds | null;
}

/** A device as people who run the bridge see it. */
export interface DeviceListing extends Pick<CryptoMachineRow, "deviceId"> {
  readonly pulledAt: Date | null;
  readonly publishedAt: Date | null;
  readonly renewedAt: Date | null;
  /** Events whose key this device looks for. */
  readonly waiting: number;
}

/** A device that people can write to. */
export interface KnownDevice extends Pick<CryptoMachineRow, "userId" | "deviceId"> {
  readonly name: AgentName;
  readonly identity: IdentitySeeds;
}

type Owner = Pick<CryptoMachineRow, "userId" | "epoch">;

export class CryptoMachines {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  /**
   * Takes an agent's device for the process of this session. Undefined where another process that lives has it open,
   * unless it is forced to give it up; and where the user is no agent.
   */
  async open(userId: UserId, session: string, isForced: boolean): Promise<CryptoMachineRow | undefined> {
    const [row] = await this.#database.run(
      (sql) => sql<CryptoMachineRow[]>`
        insert into crypto_machines as m (user_id, device_id, epoch, owner)
        select user_id, device_id, 1, ${session} from agents where user_id = ${userId} and deleted_at is null
        on conflict (user_id) do update set epoch = m.epoch + 1, owner = excluded.owner
        where ${isForced} or m.owner is null or m.owner = ${session} or not ${sessionLives(sql, "m.owner")}
        returning user_id as "userId", device_id as "deviceId", epoch, since, published_at is not null as "isPublished", identity,
          published_at is not null and not exists (select 1 from crypto_rows where user_id = m.user_id) as "isForgetful"`,
    );
    return row;
  }

  /**
   * Puts another device in place of the agent's, without any memory. Returns whether it did: one that is younger than
   * an hour stays, unless a person wants it.
   */
  async renew(
    { userId, deviceId }: Pick<CryptoMachineRow, "userId" | "deviceId">,
    next: string,
    isWanted: boolean,
  ): Promise<boolean> {
    const rows = await this.#database.run(
      (sql) => sql`
        with renewed as (
          update crypto_machines set device_id = ${next}, epoch = epoch + 1, since = null, pulled_at = null,
            published_at = null, renewed_at = now()
          where user_id = ${userId} and device_id = ${deviceId}
            and (${isWanted} or renewed_at is null or renewed_at < now() - interval '1 hour')
          returning user_id
        ), forgotten as (
          delete from crypto_rows where user_id in (select user_id from renewed)
        )
        update agents set device_id = ${next} where user_id in (select user_id from renewed) returning 1`,
    );
    return rows.length > 0;
  }

  /** Leaves devices to other processes. */
  async release(owners: readonly Owner[]): Promise<void> {
    await this.#database.run(
      (sql) => sql`
        update crypto_machines m set owner = null
        from jsonb_to_recordset(${sql.json(owners.map(({ userId, epoch }) => ({ userId, epoch })))}) as o("userId" text, epoch bigint)
        where m.user_id = o."userId" and m.epoch = o.epoch`,
    );
  }

  /** The device has stored what came for it up to here. */
  markPulled({ userId, epoch }: Owner, since: string): Promise<void> {
    return this.#own(
      (sql) => sql`
        update crypto_machines set since = ${since}, pulled_at = now()
        where user_id = ${userId} and epoch = ${epoch} returning 1`,
    );
  }

  /** The homeserver has the device's keys, and the identity that signs them. */
  markPublished({ userId, epoch }: Owner, identity: IdentitySeeds): Promise<void> {
    return this.#own(
      (sql) => sql`
        update crypto_machines set published_at = now(), identity = ${sql.json(identity as unknown as Json)}
        where user_id = ${userId} and epoch = ${epoch} returning 1`,
    );
  }

  async find(userId: UserId): Promise<DeviceListing | undefined> {
    const [row] = await this.#database.run(
      (sql) => sql<DeviceListing[]>`
        select device_id as "deviceId", pulled_at as "pulledAt", published_at as "publishedAt", renewed_at as "renewedAt",
          (select count(*) from sealed_events s where s.user_id = m.user_id)::int as waiting
        from crypto_machines m where user_id = ${userId}`,
    );
    return row;
  }

  /** Devices of agents that the homeserver should have. */
  known(): Promise<KnownDevice[]> {
    return this.#database.run(
      (sql) => sql<KnownDevice[]>`
        select a.name, m.user_id as "userId", m.device_id as "deviceId", m.identity
        from crypto_machines m join agents a on a.user_id = m.user_id and a.deleted_at is null
        where m.published_at is not null and m.identity is not null order by a.name`,
    );
  }

  /** Finds the users who had devices, and have none now that anybody can write to. */
  async findForgetful(userIds: readonly UserId[]): Promise<UserId[]> {
    const rows = await this.#database.run(
      (sql) => sql<{ userId: UserId }[]>`
        select user_id as "userId" from crypto_machines m
        where user_id = any (${[...userIds]}::text[]) and identity is not null
          and (published_at is null or not exists (select 1 from crypto_rows where user_id = m.user_id))`,
    );
    return rows.map(({ userId }) => userId);
  }

  /** Finds the users whose devices nobody can write to: they are not published, or remember nothing. */
  async findUnpublished(userIds: readonly UserId[]): Promise<Set<UserId>> {
    const rows = await this.#database.run(
      (sql) => sql<{ userId: UserId }[]>`
        select u as "userId" from unnest(${[...userIds]}::text[]) u
        where not exists (select 1 from crypto_machines where user_id = u and published_at is not null)
          or not exists (select 1 from crypto_rows where user_id = u)`,
    );
    return new Set(rows.map(({ userId }) => userId));
  }

  async #own(statement: Parameters<Database["run"]>[0]): Promise<void> {
    const rows = (await this.#database.run(statement)) as unknown[];
    if (rows.length === 0) throw new NotOwner();
  }
}
