import { type Definitions, joinedName, readDefinitions, type ServerDefinition } from "../../adapters/mcp/definition.ts";
import { ServerFailure } from "../../adapters/mcp/failure.ts";
import {
  type ResultPart,
  type SendRequest,
  type ServerAnswer,
  type ServerCall,
  ServerLink,
  type ServerResource,
} from "../../adapters/mcp/link.ts";
import type { Clock } from "../../base/lib/clock.ts";
import { messageOf, UserError } from "../../base/lib/errors.ts";
import { digest } from "../../base/lib/ids.ts";
import { canonicalJson } from "../../base/lib/json.ts";
import type { Log } from "../../base/lib/log.ts";
import { Rounds } from "../../base/lib/rounds.ts";
import type { ServerToolRow, ServerTools } from "../tables/server-tools.ts";
import type { ServerComputers } from "./server-computers.ts";
import { isIncluded, type ServerSettings } from "./server-settings.ts";

/** Rest between looks at what a server has. */
const lookEveryMs = 300_000;
/** Looks that the server asks for are no closer than this. */
const closestMs = 2_000;
/** Pauses after failures: each twice as long as the one before. */
const pauses = { first: 1_000, longest: 300_000 };

/** Last thing that is known of a server. */
type ServerCondition =
  | { readonly state: "unasked" }
  | { readonly state: "answers" | "silent"; readonly why: string; readonly since: Date };

export interface ServersParts {
  readonly settings: readonly ServerSettings[];
  readonly exchange: SendRequest;
  readonly computers: Pick<ServerComputers, "start" | "keep">;
  readonly table: ServerTools;
  readonly clock: Clock;
  readonly log: Log;
  /** Tells other processes that tools of this server are others now. */
  readonly tellOthers: (server: string) => void;
  readonly onCalled: (server: string, outcome: "done" | "failed" | "unknown") => void;
  readonly onLooked: (server: string, isUp: boolean) => void;
}

/** A server with its connection, and all that is known of it. */
interface Known {
  readonly settings: ServerSettings;
  readonly link: ServerLink;
  readonly rounds: Rounds;
  condition: ServerCondition;
  leftOut: Definitions["leftOut"];
  failures: number;
  lookedAt: number;
  looking: Promise<void> | undefined;
}

/**
 * Servers of tools (MCP). What they offer is in the database, as it was accepted: an agent has its tools also while a server is
 * away. A definition that is another than the accepted one is withheld.
 */
export class Servers {
  readonly #parts: ServersParts;
  readonly #known: ReadonlyMap<string, Known>;
  #rows: ReadonlyMap<string, ServerToolRow> = new Map();

  constructor(parts: ServersParts) {
    this.#parts = parts;
    this.#known = new Map(parts.settings.map((settings) => [settings.name, this.#begin(settings)]));
  }

  get settings(): readonly ServerSettings[] {
    return this.#parts.settings;
  }

  /** Tools of these servers that were accepted once, by their names; see `isOffered`. */
  toolsOf(servers: readonly string[]): readonly ServerToolRow[] {
    return [...this.#rows.values()].filter(({ server }) => servers.includes(server));
  }

  row(name: string): ServerToolRow | undefined {
    return this.#rows.get(name);
  }

  /** True if the tool is there as it was accepted. */
  isOffered(name: string): boolean {
    return this.#rows.get(name)?.isOffered === true;
  }

  /** Throws a `UserError` if there is no such server. */
  describe(server: string) {
    const { settings, condition, leftOut } = this.#find(server);
    return { settings, condition, leftOut, tools: this.toolsOf([server]) };
  }

  /** Reads from the database what was accepted. */
  async load(): Promise<void> {
    const rows = await this.#parts.table.all([...this.#known.keys()]);
    const before = this.#rows;
    this.#rows = new Map(
      rows
        .filter(({ server, accepted, seen }) => {
          const settings = this.#known.get(server)?.settings;
          return settings !== undefined && isIncluded(settings, (accepted ?? seen)?.tool ?? "");
        })
        .map((row) => {
          const name = joinedName(row.server, row.name);
          const old = before.get(name);
          // An unchanged row stays the same object: the tool made from it is kept by it.
          return [name, old && canonicalJson(old) === canonicalJson(row) ? old : row];
        }),
    );
  }

  start(): void {
    const { computers, log } = this.#parts;
    const programs = this.settings.filter(({ door }) => "command" in door).map(({ name }) => name);
    void computers.keep(programs).catch((error: unknown) => log.warn(messageOf(error)));
    for (const known of this.#known.values()) known.rounds.start(() => this.#round(known));
  }

  async stop(): Promise<void> {
    await Promise.all(
      [...this.#known.values()].map(async ({ rounds, link }) => {
        const stopped = rounds.stop();
        await link.close();
        await stopped;
      }),
    );
  }

  /** Asks a server now what it has. Throws a `UserError` that says why it does not answer. */
  async probe(server: string): Promise<void> {
    await this.#orTell(server, (known) => this.#look(known));
  }

  /** Lists what a server lets one read. Throws a `UserError` that says why it does not answer. */
  resources(server: string): Promise<readonly ServerResource[]> {
    return this.#orTell(server, ({ link }) => link.resources());
  }

  /** Reads something that a server has. Throws as above. */
  read(server: string, uri: string): Promise<readonly ResultPart[]> {
    return this.#orTell(server, ({ link }) => link.read(uri));
  }

  /** Definitions that are withheld until somebody accepts them, and a short name for exactly these. */
  withheld(server: string): { readonly tools: ReadonlyMap<string, ServerDefinition>; readonly code: string } {
    const rows = this.describe(server).tools.filter(({ isOffered }) => !isOffered);
    const tools = new Map(rows.flatMap(({ name, seen }) => (seen === null ? [] : [[name, seen] as const])));
    return { tools, code: digest("definitions", canonicalJson(Object.fromEntries(tools))).slice(0, 8) };
  }

  /** Offers these definitions from now on, as far as the server still gives them. Returns the names of the tools. */
  async accept(server: string, tools: ReadonlyMap<string, ServerDefinition>): Promise<string[]> {
    const names = await this.#parts.table.accept(server, tools);
    await this.load();
    this.#parts.tellOthers(server);
    return names.map((name) => joinedName(server, name));
  }

  /**
   * Calls a tool. A server that was away is asked first what it has.
   * @throws UserError if it was not done; ServerFailure if that is not known
   */
  async call(name: string, asked: Omit<ServerCall, "tool" | "timeoutMs">): Promise<ServerAnswer> {
    const row = this.#rows.get(name);
    const known = row && this.#known.get(row.server);
    if (!row?.accepted || !known) throw new UserError(`There is no tool ${name} any more.`);
    const { server, accepted } = row;
    const { tool } = accepted;
    const { timeoutMs } = known.settings;
    for (let attempt = 1; ; attempt++) {
      try {
        if (!known.link.isOpen) await this.#look(known);
        this.#requireOffered(name, accepted);
        const answer = await known.link.call({ ...asked, tool, timeoutMs });
        this.#parts.onCalled(server, answer.isError ? "failed" : "done");
        return answer;
      } catch (error) {
        if (!(error instanceof ServerFailure)) throw error;
        if (error.isSessionLost && !error.mayBeDone && attempt === 1) continue;
        this.#parts.onCalled(server, error.mayBeDone ? "unknown" : "failed");
        if (error.mayBeDone) throw error;
        throw new UserError(`the server ${server} could not be asked: ${error.message}`);
      }
    }
  }

  #requireOffered(name: string, accepted: ServerDefinition): void {
    const row = this.#rows.get(name);
    if (row?.isOffered && canonicalJson(row.accepted) === canonicalJson(accepted)) return;
    if (row && row.seen === null) throw new UserError(`the server ${row.server} has no tool ${name} now`);
    throw new UserError(
      `the server has changed what ${name} is: it is withheld until an admin accepts it (!mcp accept ${row?.server})`,
    );
  }

  async #orTell<Result>(server: string, ask: (known: Known) => Promise<Result>): Promise<Result> {
    const known = this.#find(server);
    try {
      return await ask(known);
    } catch (error) {
      if (!(error instanceof ServerFailure)) throw error;
      throw new UserError(`The server ${server} does not answer: ${error.message}.`);
    }
  }

  #find(server: string): Known {
    const known = this.#known.get(server);
    if (known) return known;
    const names = [...this.#known.keys()].join(", ");
    throw new UserError(`There is no server ${server}. Servers in config.yaml: ${names || "none"}.`);
  }

  #begin(settings: ServerSettings): Known {
    const { clock, computers, exchange } = this.#parts;
    const rounds = new Rounds(clock);
    const { door } = settings;
    const link = new ServerLink({
      door: "url" in door ? { ...door, exchange } : { start: () => computers.start({ ...door, name: settings.name }) },
      onChanged: () => rounds.nudge(),
    });
    const condition = { state: "unasked" } as const;
    return { settings, link, rounds, condition, leftOut: [], failures: 0, lookedAt: 0, looking: undefined };
  }

  /** Looks once. @returns milliseconds to rest */
  async #round(known: Known): Promise<number> {
    const { clock, log } = this.#parts;
    const { rounds, settings } = known;
    const early = known.lookedAt + closestMs - clock.monotonic();
    if (known.lookedAt > 0 && early > 0) await clock.sleep(early, rounds.signal).catch(() => {});
    if (rounds.signal.aborted) return 0;
    try {
      await this.#look(known);
      known.failures = 0;
      return lookEveryMs;
    } catch (error) {
      known.failures += 1;
      if (known.failures === 1 && !rounds.signal.aborted)
        log.warn({ server: settings.name }, `a server of tools does not answer: ${(error as Error).message}`);
      return Math.min(pauses.longest, pauses.first * 2 ** (known.failures - 1));
    }
  }

  /** Asks a server what it has, and keeps it; those who want it at the same time get one answer. */
  #look(known: Known): Promise<void> {
    known.looking ??= this.#lookNow(known).finally(() => {
      known.looking = undefined;
    });
    return known.looking;
  }

  async #lookNow(known: Known): Promise<void> {
    const { clock, table, tellOthers } = this.#parts;
    const { link, settings } = known;
    known.lookedAt = clock.monotonic();
    try {
      const { tools, leftOut } = readDefinitions(settings.name, await link.list());
      known.leftOut = leftOut;
      const isNew = await table.see(settings.name, tools);
      await this.load();
      if (isNew) tellOthers(settings.name);
      this.#note(known, "answers", "");
    } catch (error) {
      if (error instanceof ServerFailure) this.#note(known, "silent", error.message);
      throw error;
    }
  }

  #note(known: Known, state: "answers" | "silent", why: string): void {
    const { condition, settings } = known;
    this.#parts.onLooked(settings.name, state === "answers");
    const isSame = condition.state === state && condition.why === why;
    known.condition = isSame ? condition : { state, why, since: this.#parts.clock.now() };
  }
}
