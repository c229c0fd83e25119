import type { Database } from "../../adapters/database/connection.ts";
import { readAttachment } from "../../adapters/matrix/attachment.ts";
import { readMessage } from "../../adapters/matrix/message.ts";
import type { EventId } from "../../base/lib/ids.ts";
import { blank, hasAnyWord, hasWords, printsOf } from "../../base/lib/repeats.ts";
import { factsText, salvageFacts } from "../files/facts.ts";
import { formatPath } from "../files/path.ts";
import { stateNameOf } from "../files/working-files.ts";
import type { Events, StoredEvent } from "../tables/events.ts";
import {
  type Forgettable,
  type ForgottenWords,
  findEntriesToForget,
  findMessagesToForget,
  findOwnToForget,
  forgetEntries,
  forgetOwn,
  forgottenAtOnce,
  rewriteSaid,
  type SaidHere,
  type ToForget,
} from "../tables/forgetting.ts";
import { broughtAtOnce, findBroughtToForget, findFilesToForget, textOfVersion } from "../tables/forgetting-files.ts";
import {
  findKnowledgeToForget,
  findOffersToForget,
  forgetKnowledge,
  forgetOffers,
} from "../tables/forgetting-knowledge.ts";
import { WrittenFiles } from "../tables/written-files.ts";

/**
 * Makes fingerprints of the words that go with an event when it is taken away.
 * @param salt id of the event under which they are kept
 */
export async function printsOfEvent(
  events: Pick<Events, "wordsOf">,
  { eventId, type }: Pick<StoredEvent, "eventId" | "type">,
  salt: EventId = eventId,
): Promise<string[]> {
  const { commanded, contents, files, standing } = await events.wordsOf(eventId);
  const textsOf = (content: unknown) => saidIn(type, content);
  const gone = [...contents.flatMap(textsOf), ...files, ...commanded.flatMap(phrasesIn)];
  return printsOf(gone, salt, standing.flatMap(textsOf));
}

/** Texts of an event that people wrote: a message, its caption, the name of its file, a room's name or topic. */
const saidIn = (type: string, content: unknown): string[] => {
  const { name, topic } = content as { name?: unknown; topic?: unknown };
  const ofRoom = type === "m.room.topic" ? topic : type === "m.room.name" ? name : undefined;
  const texts = [readMessage({ type, content })?.body, readAttachment({ type, content })?.name, ofRoom];
  return texts.filter((text) => typeof text === "string");
};

/** Texts in the input of a command; no ids, paths or constants, which say nothing of their own. */
const phrasesIn = ({ key, value, ...input }: Record<string, unknown>): string[] => {
  const phrases = Object.values(input).flatMap((field) => (Array.isArray(field) ? field : [field]));
  // A fact stands under its name wherever it stands: alone, its value may be a word like any other.
  const fact =
    typeof key === "string" && typeof value === "string"
      ? [`${key} ${value}`, ...(/[\s\d]/.test(value) ? [value] : [])]
      : [key, value];
  return [...fact, ...phrases].filter(
    (text) => typeof text === "string" && !/^(?:[@!$#]\S+|[a-z]+:\/\S*|[A-Z_]+)$/.test(text),
  ) as string[];
};

/** More messages than these are looked for together where agents have repeated them. */
const apartMost = 20;

/** Fingerprints of what is forgotten at once. */
const printsMost = 20_000;

/** How much was forgotten of each kind. */
export interface Forgotten {
  readonly messages: number;
  readonly memories: number;
  readonly knowledge: number;
  /** Files of agents, in which lines were blanked; those of messages go with these. */
  readonly files: number;
  /** Paths of people's files that have the words still. */
  readonly left: readonly string[];
}

/** Makes agents forget. A message is taken from them as by a redaction; in its room it stays, for people. */
export class Forgetting {
  readonly #database: Database;
  readonly #events: Pick<Events, "find" | "redact" | "wordsOf">;

  constructor(database: Database, events: Pick<Events, "find" | "redact" | "wordsOf">) {
    this.#database = database;
    this.#events = events;
  }

  /** Forgets a message, and all that was made of it. */
  async message(eventId: EventId): Promise<void> {
    const event = await this.#events.find(eventId);
    if (event) await this.#events.redact(eventId, await printsOfEvent(this.#events, event));
  }

  /** Forgets what is found. */
  async all(what: ToForget): Promise<Forgotten> {
    const database = this.#database;
    const { words } = what;
    const isMeant = (texts: readonly string[]) => words === undefined || texts.some((text) => hasWords(text, words));
    const own = await forgetEach({
      read: (below) => findOwnToForget(database, what, below),
      isMeant: ({ text }) => isMeant([text]),
      forget: (found) =>
        forgetOwn(
          database,
          idsOf(found),
          markOf("memory", found, ({ text }) => text),
        ),
    });
    const knowledge = await forgetEach({
      read: (below) => findKnowledgeToForget(database, what, below),
      isMeant: ({ text }) => isMeant([text]),
      // A section of a file says more than what is meant.
      forget: (found) =>
        forgetKnowledge(
          database,
          idsOf(found),
          markOf("knowledge", found, ({ text }) => linesWith(text, words)),
        ),
    });
    const offers = (await findOffersToForget(database, what)).filter(({ text }) => isMeant([text]));
    if (offers.length > 0)
      await forgetOffers(
        database,
        offers.map(({ key }) => key),
      );
    const brought = await forgetEach({
      read: (below) => findBroughtToForget(database, what, below),
      isMeant: ({ texts }) => isMeant(texts),
      forget: async (found) => {
        for (const { eventId } of found) await this.message(eventId);
      },
      atOnce: broughtAtOnce,
    });
    const said = await forgetEach({
      read: (below) => findMessagesToForget(database, what, below),
      isMeant: ({ contents, type }) => isMeant(contents.flatMap((content) => saidIn(type, content))),
      forget: (found) => this.#messages(found),
    });
    const entries = await forgetEach({
      read: (below) => findEntriesToForget(database, what, below),
      isMeant: ({ text }) => isMeant([text.replace(/<[^>]*>/g, " ")]),
      forget: (found) => forgetEntries(database, idsOf(found)),
    });
    // Whose words stand in an agent's file is not known: they take the right to have others' words forgotten.
    const isOfAll = words !== undefined && what.by === undefined;
    return {
      messages: said + brought,
      memories: own + entries,
      knowledge: knowledge + offers.length,
      ...(isOfAll ? await this.#files(what, words) : { files: 0, left: [] }),
    };
  }

  /** Blanks the lines of agents' files that have the words; of facts.json, these facts are left out. */
  async #files(what: ToForget, words: string): Promise<Pick<Forgotten, "files" | "left">> {
    const blanked = new Set<string>();
    const left = new Set<string>();
    for (const file of await findFilesToForget(this.#database, what)) {
      const found = await textOfVersion(this.#database, file);
      if (found === undefined || !hasWords(found, words)) continue;
      const path = formatPath(file);
      if (!file.isAgents) {
        left.add(path);
        continue;
      }
      const lines = found.split("\n");
      const kept = lines.map((line) => (hasWords(line, words) ? blank : line)).join("\n");
      if (kept === found) continue;
      const text = stateNameOf(file) === "facts.json" ? factsText(salvageFacts(kept)) : kept;
      await new WrittenFiles(this.#database).replace(file, text);
      blanked.add(path);
    }
    return { files: blanked.size, left: [...left] };
  }

  /** Takes the words out of a command that has named them, also where agents are shown it. */
  async command(eventId: EventId, body: string): Promise<void> {
    await rewriteSaid(this.#database, eventId, body);
  }

  async #messages(found: readonly SaidHere[]): Promise<void> {
    const oldest = found.at(-1);
    if (!oldest || found.length <= apartMost) {
      for (const { eventId } of found) await this.message(eventId);
      return;
    }
    const prints = new Set<string>();
    for (const event of found)
      for (const print of await printsOfEvent(this.#events, event, oldest.eventId)) prints.add(print);
    await this.#events.redact(oldest.eventId, [...prints]);
    for (const event of found.slice(0, -1)) {
      const own = await printsOfEvent(this.#events, event);
      const { shown } = await this.#events.redact(event.eventId);
      // Messages that show it are taken back with a mark of its own.
      if (shown.length > 0) await this.#events.redact(event.eventId, own);
    }
  }
}

interface Forgetter<Found extends Forgettable> {
  /** Reads the next rows, the newest first, with lower ids than this one. */
  readonly read: (below: number | undefined) => Promise<Found[]>;
  readonly isMeant: (one: Found) => boolean;
  readonly forget: (found: readonly Found[]) => Promise<void>;
  /** Rows that are read at once. */
  readonly atOnce?: number;
}

/** Reads all that there is, and forgets what is meant; returns how much that was. */
async function forgetEach<Found extends Forgettable>({
  atOnce = forgottenAtOnce,
  forget,
  isMeant,
  read,
}: Forgetter<Found>): Promise<number> {
  let count = 0;
  for (let below: number | undefined; ; ) {
    const rows = await read(below);
    const found = rows.filter(isMeant);
    if (found.length > 0) await forget(found);
    count += found.length;
    if (rows.length < atOnce) return count;
    below = rows.at(-1)?.id;
  }
}

const idsOf = (found: readonly Forgettable[]): number[] => found.map(({ id }) => id);

/** Mark by which the words of what is forgotten are looked for elsewhere. */
function markOf<Found extends Forgettable>(
  kind: string,
  found: readonly Found[],
  textOf: (one: Found) => string,
): ForgottenWords {
  const key = `${kind} ${idsOf(found).join(" ")}`.slice(0, 200);
  return { key, prints: printsOf(found.map(textOf), key).slice(0, printsMost) };
}

/** Lines of a text that have one of the words; all of them if none is named. */
const linesWith = (text: string, words: string | undefined): string => {
  const parts = words?.split(/\s+/).filter(hasAnyWord);
  if (parts === undefined) return text;
  return text
    .split("\n")
    .filter((line) => parts.some((part) => hasWords(line, part)))
    .join("\n");
};
