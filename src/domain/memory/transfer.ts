import type { Database } from "../../adapters/database/connection.ts";
import { UserError } from "../../base/lib/errors.ts";
import { digest, type EventId, type RoomId, type UserId } from "../../base/lib/ids.ts";
import type { Agent } from "../agents/agent.ts";
import { Files, type FileWrite } from "../tables/files.ts";
import { type ExportEnd, MemoryTransfers, type PortableFile, type TakenIn } from "../tables/memory-export.ts";
import { type ExportHeader, readExport, writeExport } from "./export-format.ts";

type Remembering = Pick<Agent, "name" | "userId" | "owner">;

/** An export, as it is sent into a room. */
interface ExportedMemory {
  readonly text: string;
  readonly memories: number;
  readonly files: number;
  readonly keptBack: number;
  /** Value of `before` with which the rest is exported. */
  readonly older: string | undefined;
  /** Messages that can be read in it. */
  readonly eventIds: readonly EventId[];
}

interface Import {
  readonly text: string;
  readonly by: UserId;
  /** Equal for one import, however often it is tried. */
  readonly key: string;
  readonly now: Date;
  readonly limits: NonNullable<FileWrite["limits"]>;
}

/** Result of an import. */
interface Imported extends TakenIn {
  /** Agent and homeserver that the file names. */
  readonly from: string;
  /** Paths of working files that were kept. */
  readonly paths: readonly string[];
}

/** Longest export, in characters. */
const charactersMost = 4_000_000;
const rowsAtOnce = 500;
/** Taints whatever recalls something imported: anybody can have written the file. */
const taint = ["an imported memory"];

const endPattern = /^(\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:\.\d{1,3})?)?Z)(?:\/(\d{1,15}))?$/;

/** Reads where an export goes on. */
function readEnd(text: string): ExportEnd {
  const [, time = "", place = "0"] = endPattern.exec(text) ?? [];
  const at = new Date(time);
  if (Number.isNaN(at.getTime())) throw new UserError("before is no time. Write it as 2026-03-01T12:00:00Z.");
  return { at, place: Number(place) };
}

/** Carries the memory of agents from one installation to another, as lines of JSON. */
export class MemoryTransfer {
  readonly #transfers: MemoryTransfers;
  readonly #files: Files;
  readonly #serverName: string;

  constructor(database: Database, serverName: string) {
    this.#transfers = new MemoryTransfers(database);
    this.#files = new Files(database);
    this.#serverName = serverName;
  }

  /**
   * Writes down what everybody in a room may read of the agent's memory, the newest of it where it is much.
   * @param before a time, or `older` of the part before
   */
  async exportFrom(agent: Remembering, here: RoomId, now: Date, before?: string): Promise<ExportedMemory> {
    const who = { agent: agent.name, userId: agent.userId, owner: agent.owner, here };
    const end = before === undefined ? undefined : readEnd(before);
    const extent = await this.#transfers.extent(who);
    const files = before === undefined ? await this.#transfers.files(who) : [];
    const newest = await this.#transfers.newest(who, charactersMost, end);
    const oldest = newest.at(-1);
    const keptBack = extent.all - extent.open + extent.allFiles - extent.openFiles;
    const counts = { memories: newest.length, files: files.length, keptBack };
    const header = { agent: agent.name, server: this.#serverName, at: now.toISOString(), ...counts };
    const memories = newest.map(({ place: _place, total: _total, ...memory }) => memory).toReversed();
    return {
      ...counts,
      text: writeExport({ header, memories, files }),
      older: oldest && oldest.total > newest.length ? `${oldest.at}/${oldest.place}` : undefined,
      eventIds: newest.flatMap(({ event }) => (event === null ? [] : [event as EventId])),
    };
  }

  /**
   * Takes in an export as the agent's own memory, for its owner alone. Imported twice it is there once.
   * @throws UserError, before anything is changed, where something in the file cannot be taken
   */
  async importInto(agent: Remembering, { text, by, key, now, limits }: Import): Promise<Imported> {
    const { header, memories, files } = readExport(text, now);
    const importer = { agent: agent.name, userId: agent.userId, requester: by, taint };
    const paths: string[] = [];
    for (const file of files) paths.push(await this.#keep(agent, file, { by, key, limits, from: header }));
    const sum = { taken: 0, known: 0, gone: 0 };
    for (let from = 0; from < memories.length; from += rowsAtOnce) {
      const done = await this.#transfers.takeIn(importer, memories.slice(from, from + rowsAtOnce));
      sum.taken += done.taken;
      sum.known += done.known;
      sum.gone += done.gone;
    }
    return { ...sum, from: `${header.agent} on ${header.server}`, paths };
  }

  /** Keeps a working file beside those that the agent has: it goes on with none of them. */
  async #keep(
    agent: Remembering,
    { name, room, text }: PortableFile,
    { by, key, limits, from }: Pick<Import, "by" | "key" | "limits"> & { readonly from: ExportHeader },
  ): Promise<string> {
    const folder = digest(from.server, from.agent, room ?? "")
      .replace(/\W/g, "")
      .slice(0, 12);
    const place = { share: "agents", path: `/${agent.name}/memory/imported/${folder}/${name}` };
    const path = `${place.share}:${place.path}`;
    const [before] = await this.#files.read([place]);
    if (before?.text === text) return path;
    const contentType = name.endsWith(".json") ? "application/json" : "text/markdown";
    const written = { ...place, contentType, text, owner: by, isTainted: true, limits, key: digest(key, path) };
    const { state } = await this.#files.write(written);
    if (state !== "written")
      throw new UserError(`The files of ${agent.name} take all the space that they may: no memory was imported.`);
    return path;
  }
}
