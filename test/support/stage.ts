import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { stringify } from "yaml";
import { type Database, openDatabase } from "../../src/adapters/database/connection.ts";
import { copyDatabase } from "./backup.ts";
import { startBalancer } from "./balancer.ts";
import { BridgeProcess } from "./bridge-process.ts";
import { freePort } from "./free-port.ts";
import { startTestHomeserver, type TestHomeserver } from "./homeserver.ts";
import { HttpProxy } from "./http-proxy.ts";
import { eventually } from "./poll.ts";
import type { TestDatabase } from "./postgres.ts";
import { ScriptedModel } from "./scripted-model.ts";
import { type QueuedRow, wereSentInOrder } from "./sending-order.ts";
import { copyEmbedded } from "./shared-embedded.ts";
import { createSharedDatabase } from "./shared-postgres.ts";
import { lockTable, type TableLock } from "./table-lock.ts";
import { startTcpProxy, type TcpProxy } from "./tcp-proxy.ts";
import { createUser, type TestUser } from "./user.ts";
import { indiscretions } from "./wire.ts";

export interface StageOptions {
  readonly database: "embedded" | "postgres";
  /** Fields of `agent.json` by agent. Default: `helper` alone. */
  readonly agents?: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
  /** Default: everybody of the server may chat, `@admin` is admin. */
  readonly permissions?: Readonly<Record<string, string>>;
  /** Sections of config.yaml beside those that every stage has. */
  readonly config?: Readonly<Record<string, unknown>>;
  /** A PostgreSQL of the test's own in place of the shared one. */
  readonly postgresUrl?: string;
  /** How many bridges share the database, behind a load balancer. Default: one. */
  readonly processes?: number;
  /** By how many milliseconds the wall clock of each bridge is wrong. */
  readonly clockOffsets?: readonly number[];
}

/**
 * A homeserver, a database, a scripted model and a bridge, each behind a proxy that can hold or cut. The bridge is
 * not started yet when the stage is set: the test scripts the model first.
 */
export class Stage {
  readonly homeserver: TestHomeserver;
  readonly model: ScriptedModel;
  /** All bridges; most tests have one. */
  readonly bridges: readonly BridgeProcess[];
  /** Between the bridge and Synapse, where the bridge asks. */
  readonly toHomeserver: HttpProxy;
  /** Between Synapse and the bridge, where Synapse pushes. */
  readonly toBridge: HttpProxy;
  readonly toModel: HttpProxy;
  /** Between the bridge and PostgreSQL; absent on the embedded database. */
  readonly toDatabase: TcpProxy | undefined;
  readonly #location: { dir: string } | { url: string };
  readonly #users: TestUser[] = [];
  #database: Promise<Database> | undefined;
  readonly #drop: () => Promise<void>;

  private constructor(parts: Parts) {
    this.homeserver = parts.homeserver;
    this.model = parts.model;
    this.bridges = parts.bridges;
    this.toHomeserver = parts.toHomeserver;
    this.toBridge = parts.toBridge;
    this.toModel = parts.toModel;
    this.toDatabase = parts.toDatabase;
    this.#location = parts.location;
    this.#drop = parts.drop;
    this.bridge.beforeStart = () => this.#closeDatabase();
  }

  /** The first of the bridges. */
  get bridge(): BridgeProcess {
    const [bridge] = this.bridges;
    if (!bridge) throw new Error("a stage has one bridge at least");
    return bridge;
  }

  static async set(options: StageOptions): Promise<Stage> {
    const proxyPort = await freePort();
    const bridgePorts = await Promise.all(Array.from({ length: options.processes ?? 1 }, freePort));
    const homeserver = await startTestHomeserver({ applicationServicePort: proxyPort });
    const balancer = bridgePorts.length > 1 ? await startBalancer(bridgePorts) : undefined;
    const bridgeUrl = `http://127.0.0.1:${balancer?.port ?? bridgePorts[0]}`;
    const [toBridge, toHomeserver, model] = await Promise.all([
      HttpProxy.start(bridgeUrl, { port: proxyPort }),
      HttpProxy.start(homeserver.url),
      startModel(),
    ]);
    const toModel = await HttpProxy.start(model.url);
    const own: TestDatabase | undefined =
      options.database === "postgres" && options.postgresUrl === undefined ? await createSharedDatabase() : undefined;
    const databaseUrl = options.postgresUrl ?? own?.url;
    const toDatabase = databaseUrl === undefined ? undefined : await startTcpProxy(databaseUrl);
    const location = databaseUrl === undefined ? { dir: join(homeserver.dir, "data") } : { url: databaseUrl };
    if ("dir" in location) await copyEmbedded(location.dir);
    const config = {
      homeserver: { url: toHomeserver.url, serverName: homeserver.serverName },
      registration: homeserver.registrationFile,
      database: toDatabase ? { url: toDatabase.url } : location,
      embeddings: { kind: "off" },
      sandbox: { kind: "off" },
      model: { baseUrl: toModel.url, apiKey: "scripted", name: "scripted" },
      permissions: options.permissions ?? {
        [`@admin:${homeserver.serverName}`]: "admin",
        [`@*:${homeserver.serverName}`]: "chat",
      },
      limits: { requester: 100_000, room: 100_000 },
      ...options.config,
      agents: withOwner(options.agents ?? { helper: {} }, homeserver.serverName),
    };
    const bridges = bridgePorts.map(async (port, index) => {
      const file = join(homeserver.dir, `config${index || ""}.yaml`);
      const bridge = { url: homeserver.applicationServiceUrl, host: "127.0.0.1", port };
      await writeFile(file, stringify({ ...config, bridge }));
      const env = wrongClock(options.clockOffsets?.[index]);
      return new BridgeProcess(file, `http://127.0.0.1:${port}`, env);
    });
    const drop = async () => {
      await balancer?.stop();
      await own?.drop();
    };
    return new Stage({
      homeserver,
      model,
      bridges: await Promise.all(bridges),
      toHomeserver,
      toBridge,
      toModel,
      toDatabase,
      location,
      drop,
    });
  }

  agentId(name = "helper"): string {
    return `@agent_${name}:${this.homeserver.serverName}`;
  }

  async user(name: string): Promise<TestUser> {
    const user = await createUser(this.homeserver, name);
    this.#users.push(user);
    return user;
  }

  /** A direct room of the user with an agent that has joined it. */
  async directRoom(user: TestUser, agent = "helper"): Promise<string> {
    const room = await user.createDirectRoom(this.agentId(agent));
    await user.waitForMembership(room, "join", this.agentId(agent));
    return room;
  }

  /** A private room of the first user with the other users and agents, all of them joined. */
  async room(creator: TestUser, others: readonly TestUser[], agents: readonly string[]): Promise<string> {
    const ids = [...others.map(({ id }) => id), ...agents.map((agent) => this.agentId(agent))];
    const room = await creator.createRoom({ preset: "private_chat", invite: ids });
    for (const other of others) {
      await other.waitForMembership(room, "invite");
      await other.join(room);
    }
    for (const id of ids) await creator.waitForMembership(room, "join", id);
    return room;
  }

  /** Runs a query; on the embedded database only while the bridge does not run. */
  async query<Row extends object>(text: string): Promise<Row[]> {
    this.#database ??= openDatabase(this.#location);
    const { sql } = await this.#database;
    return [...(await sql.unsafe<Row[]>(text))];
  }

  /** Holds back whoever writes into a table; on PostgreSQL only. */
  async lock(table: string): Promise<TableLock> {
    this.#database ??= openDatabase(this.#location);
    return lockTable(await this.#database, table);
  }

  /** Copies the database of a bridge that does not run; returns how to bring it back. */
  async copyDatabase(): Promise<() => Promise<void>> {
    await this.#closeDatabase();
    const bringBack = await copyDatabase(this.#location);
    return async () => {
      await this.#closeDatabase();
      await bringBack();
    };
  }

  /** Gives the database back to the bridge. */
  async #closeDatabase(): Promise<void> {
    const database = await this.#database;
    this.#database = undefined;
    await database?.close();
  }

  /**
   * Checks what must hold after everything: nothing is left to route or to send, no turn is open, and every row of the
   * outbox is one event in its room, sent after the row was written, those of one sender in the order of the rows
   * (see `wereSentInOrder`; two senders who speak at the same moment may be sent in either order). Every message that the
   * homeserver has of a room in which an agent was is stored. None of ours said anything in plain text where it may not. On the embedded database the bridge is stopped for it.
   * `isRestored`: an older copy of the database goes on, which does not know all that was sent.
   */
  async check({ isRestored = false } = {}): Promise<void> {
    if (!("dir" in this.#location)) {
      const look = () => this.#look(isRestored).then(() => true);
      await eventually(look, { within: 60_000, what: "everything to be routed, answered and sent" });
      return;
    }
    for (let attempt = 1; ; attempt++) {
      await sleep(1_500 * attempt);
      await this.bridge.stop();
      try {
        return await this.#look(isRestored);
      } catch (error) {
        if (attempt === 5) throw error;
      }
      await this.bridge.start();
    }
  }

  /** Ends everything and removes its state. */
  async strike(): Promise<void> {
    for (const user of this.#users) user.stop();
    await Promise.all([...this.bridges.map((bridge) => bridge.kill()), this.#closeDatabase()]);
    await Promise.all([this.toBridge.stop(), this.toHomeserver.stop(), this.toModel.stop(), this.toDatabase?.stop()]);
    await this.homeserver.dispose();
    await this.#drop();
    await this.model.stop();
  }

  async #look(isRestored: boolean): Promise<void> {
    const [left] = await this.query<Record<string, number>>(leftovers);
    const open = Object.entries(left ?? {}).filter(([, count]) => count > 0);
    if (open.length > 0) throw new Error(`left over: ${JSON.stringify(open)}`);
    const sent = await this.query<SentRow>(
      "select key, room_id as room, sender, event_id as event, turn_id as turn, created_at as \"createdAt\" from outbox where kind in ('message', 'file', 'media') and state = 'sent' order by id",
    );
    for (const [room, rows] of Map.groupBy(sent, ({ room }) => room)) await this.#checkRoom(room, rows, isRestored);
    const [stale] = await this.query<{ key: string; event: string }>(olderThanRow);
    // A turn that was at work in the copy says what it had said before, under the ids of then.
    if (stale && !isRestored)
      throw new Error(`the row ${stale.key} of the outbox is younger than its event ${stale.event}`);
    for (const { room, agent } of await this.query<{ room: string; agent: string }>(agentsInRooms))
      await this.#checkStored(room, agent);
  }

  /** Every message that came while the agent was in the room is stored, or kept aside. */
  async #checkStored(room: string, agent: string): Promise<void> {
    const heard: string[] = [];
    let isThere = false;
    const timeline = await this.#timeline(room, agent);
    const isOurs = (userId: string) => userId.startsWith("@agent_") || userId.startsWith("@clevernet:");
    const [indiscretion] = indiscretions(timeline, isOurs);
    if (indiscretion !== undefined) throw new Error(`in ${room} ${indiscretion}`);
    for (const event of timeline) {
      if (event.type === "m.room.member" && event.state_key === agent) isThere = event.content.membership === "join";
      if (isThere && isMessage(event)) heard.push(event.event_id);
    }
    const ids = heard.map((id) => `'${id}'`).join(", ");
    const stored =
      heard.length === 0
        ? []
        : await this.query<{ id: string }>(
            `select event_id as id from events where event_id in (${ids})
            union select id from unnest(array[${ids}]) id join quarantine on position(convert_to(id, 'UTF8') in raw) > 0`,
          );
    const known = new Set(stored.map(({ id }) => id));
    const missing = heard.filter((id) => !known.has(id));
    if (missing.length > 0)
      throw new Error(
        `${missing.length} of ${heard.length} messages in ${room} are not stored: ${missing.slice(0, 5)}`,
      );
  }

  async #checkRoom(room: string, rows: readonly SentRow[], isRestored: boolean): Promise<void> {
    const all = await this.#timeline(room, rows[0]?.sender ?? "");
    const timeline = all.filter(isMessage);
    const redacted = new Set(all.filter(isRedacted).map((event) => event.event_id));
    for (const [sender, queued] of Map.groupBy(rows, (row) => row.sender)) {
      const lasting = queued.filter(({ event }) => !redacted.has(event));
      const expected = lasting.map((row) => row.key);
      const known: ReadonlySet<unknown> = new Set(expected);
      const sent = timeline.filter(
        (event) => event.sender === sender && !(isRestored && !known.has(event.content["org.clevernet.key"])),
      );
      const keys = sent.map((event) => event.content["org.clevernet.key"]);
      if (!wereSentInOrder(lasting, keys)) {
        const said = sent.map((event) => `${event.content["org.clevernet.key"]} ${event.content.body}`).join("\n");
        throw new Error(
          `in ${room}, as ${rows[0]?.sender} reads it, the outbox has\n${expected.join("\n")}\nand the room\n${said}`,
        );
      }
    }
  }

  /** The room's events as one of our own users sees them, oldest first. */
  async #timeline(room: string, as: string): Promise<TimelineEvent[]> {
    const { url, registration } = this.homeserver;
    const events: TimelineEvent[] = [];
    let from: string | undefined;
    do {
      const query = new URLSearchParams({ dir: "b", limit: "200", user_id: as, ...(from !== undefined && { from }) });
      const response = await fetch(`${url}/_matrix/client/v3/rooms/${encodeURIComponent(room)}/messages?${query}`, {
        headers: { authorization: `Bearer ${registration.as_token}` },
      });
      const page = (await response.json()) as { chunk?: TimelineEvent[]; end?: string };
      events.unshift(...(page.chunk ?? []).toReversed());
      from = page.end;
    } while (from !== undefined);
    return events;
  }
}

interface Parts
  extends Pick<Stage, "homeserver" | "model" | "bridges" | "toHomeserver" | "toBridge" | "toModel" | "toDatabase"> {
  readonly location: { dir: string } | { url: string };
  readonly drop: () => Promise<void>;
}

interface SentRow extends QueuedRow {
  readonly room: string;
  readonly sender: string;
  readonly event: string;
}

interface TimelineEvent {
  readonly event_id: string;
  readonly state_key?: string;
  readonly type: string;
  readonly sender: string;
  readonly content: Readonly<Record<string, unknown>>;
}

/** A message that says something still; what was redacted says nothing. */
const isMessage = ({ content, type }: TimelineEvent): boolean =>
  (type === "m.room.message" && content.body !== undefined) ||
  (type === "m.room.encrypted" && content.ciphertext !== undefined);

const isRedacted = ({ content, type }: TimelineEvent): boolean =>
  (type === "m.room.message" && content.body === undefined) ||
  (type === "m.room.encrypted" && content.ciphertext === undefined);

/** Rows to which the homeserver has answered with an event that was there before them. */
const olderThanRow = `select o.key, o.event_id as event from outbox o join events e on e.event_id = o.event_id
  where e.sent_at < o.created_at - interval '1 second'`;

const agentsInRooms = `select m.room_id as room, m.user_id as agent from members m join agents a on a.user_id = m.user_id
  where m.membership = 'join' and a.deleted_at is null`;

const leftovers = `select
  (select count(*) from events where routed_at is null) as "events to route",
  (select count(*) from outbox where state = 'pending') as "rows to send",
  (select count(*) from turns where state in ('running', 'ready')) as "open turns",
  (select count(*) from wakes where turn_id is null) as "unread wakes",
  (select count(*) from events where media_after is not null) as "files to fetch",
  (select count(*) from (select event_id from outbox where event_id is not null group by event_id having count(*) > 1) d) as "rows with one event"`;

const withOwner = (agents: NonNullable<StageOptions["agents"]>, serverName: string) =>
  Object.fromEntries(
    Object.entries(agents).map(([name, fields]) => [
      name,
      { owner: `@admin:${serverName}`, wakeUpTimerSeconds: null, ...fields },
    ]),
  );

/** The environment of a bridge whose wall clock is wrong. */
const wrongClock = (offset: number | undefined): Readonly<Record<string, string>> =>
  offset === undefined
    ? {}
    : { NODE_OPTIONS: `--import=${join(import.meta.dirname, "shifted-clock.ts")}`, CLOCK_OFFSET_MS: String(offset) };

async function startModel(): Promise<ScriptedModel> {
  const model = new ScriptedModel();
  await model.start();
  return model;
}
