import type { Clock } from "../../base/lib/clock.ts";
import { messageOf } from "../../base/lib/errors.ts";
import type { Log } from "../../base/lib/log.ts";
import { Rounds } from "../../base/lib/rounds.ts";
import { fromStored } from "../../base/prompt/stored.ts";
import { originOfFile, sectionsAsKnowledge } from "../../domain/files/as-knowledge.ts";
import { memoryOfEntry } from "../../domain/memory/observe.ts";
import type { StoredEvent } from "../../domain/tables/events.ts";
import type { Knowledge } from "../../domain/tables/knowledge.ts";
import type { KnowledgeOffers } from "../../domain/tables/knowledge-offers.ts";
import type { MemoryUpkeep, OldEntry, OldEvent } from "../../domain/tables/memory-upkeep.ts";
import { memoryOfSaid } from "./observed.ts";
import type { KindOf } from "./project.ts";

interface Parts {
  readonly upkeep: MemoryUpkeep;
  readonly knowledge: Knowledge;
  readonly offers: Pick<KnowledgeOffers, "forgetOld">;
  readonly kindOf: KindOf;
  /** True for a person's command. */
  readonly isCommand: (event: StoredEvent) => boolean;
  readonly clock: Clock;
  readonly log: Log;
}

/** New words are counted this often. */
const lookEveryMs = 60_000;
/** Pause in which others have the database, while there is more to do. */
const pauseMs = 50;

/** Keeps the memory up, beside the routing of events: takes over what there was before it, and counts words. */
export class MemoryKeeper {
  readonly #parts: Parts;
  readonly #rounds: Rounds;
  #takesOver = true;

  constructor(parts: Parts) {
    this.#parts = parts;
    this.#rounds = new Rounds(parts.clock);
  }

  start(): void {
    const { log } = this.#parts;
    this.#rounds.start(async () => {
      const isMore = await this.#next().catch((error: unknown) => {
        log.error({ err: error }, `the memory is kept up later: ${messageOf(error)}`);
        return false;
      });
      return isMore ? pauseMs : lookEveryMs;
    });
  }

  /** Ends after the rows in hand; the next start goes on from there. */
  stop(): Promise<void> {
    return this.#rounds.stop();
  }

  /** Returns whether there is more to do. */
  async #next(): Promise<boolean> {
    if (this.#takesOver) this.#takesOver = (await this.#takeEvents()) || (await this.#takeEntries());
    const hasChanged = await this.#followFiles();
    return (await this.#parts.upkeep.countWords()) || this.#takesOver || hasChanged;
  }

  /** Cuts files anew that have changed since they became knowledge, and forgets those that are no more. */
  async #followFiles(): Promise<boolean> {
    const { knowledge, offers } = this.#parts;
    const outdated = await knowledge.outdated();
    for (const file of outdated) {
      const { entries, prefix } = sectionsAsKnowledge(file, file.text);
      const origin = originOfFile(file, file, file.sources);
      await knowledge.keepAnew(entries, origin, prefix);
    }
    await offers.forgetOld();
    return (await knowledge.forgetGone()) || outdated.length > 0;
  }

  /** Returns whether there was something to take over. */
  async #takeEvents(): Promise<boolean> {
    const { isCommand, kindOf, upkeep } = this.#parts;
    const events = await upkeep.oldEvents();
    const isKept = (event: OldEvent): boolean => event.isKept && !isCommand(event);
    const memories = events.filter(isKept).flatMap((event) => {
      const memory = memoryOfSaid(event, kindOf);
      return memory ? [{ eventId: event.eventId, memory }] : [];
    });
    if (events.length > 0) await upkeep.takeEvents(events, memories);
    return events.length > 0;
  }

  async #takeEntries(): Promise<boolean> {
    const { upkeep } = this.#parts;
    const entries = await upkeep.oldEntries();
    const memories = entries.filter(({ isKept }) => isKept).flatMap(memoryOfOld);
    if (entries.length > 0) await upkeep.takeEntries(entries, memories);
    return entries.length > 0;
  }
}

const memoryOfOld = ({ id, entry, step, suffix }: OldEntry) => {
  const memory = memoryOfEntry(fromStored(entry), suffix, step);
  return memory ? [{ id, memory }] : [];
};
