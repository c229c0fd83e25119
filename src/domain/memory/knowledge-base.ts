import type { Database } from "../../adapters/database/connection.ts";
import { Knowledge } from "../tables/knowledge.ts";
import { KnowledgeOffers } from "../tables/knowledge-offers.ts";
import {
  findPassages,
  type KnowledgeReader,
  type KnowledgeSought,
  listSources,
  type Passage,
  removeKnowledge,
  type SourceChoice,
  type SourceGroup,
} from "../tables/knowledge-query.ts";
import { type EmbedderSource, embedQuestion } from "./question.ts";

/** A question to the knowledge. */
export interface KnowledgeQuestion extends Omit<KnowledgeSought, "vector"> {
  /** Longest wait for a vector, in milliseconds; then words alone decide. */
  readonly patienceMs?: number;
}

/** Longest question, in characters. */
const questionMost = 1_000;

/** Keeps texts for agents, and finds them again, behind the walls of whoever asks. */
export class KnowledgeBase {
  readonly #database: Database;
  readonly #embedder: EmbedderSource;
  readonly kept: Knowledge;
  readonly offers: KnowledgeOffers;

  constructor(database: Database, embedder: EmbedderSource) {
    this.#database = database;
    this.#embedder = embedder;
    this.kept = new Knowledge(database);
    this.offers = new KnowledgeOffers(database);
  }

  /** Finds the passages that fit best, the best first. */
  async find(who: KnowledgeReader, { patienceMs, ...question }: KnowledgeQuestion): Promise<Passage[]> {
    const text = question.text.slice(-questionMost);
    const vector = await embedQuestion(this.#embedder, text, patienceMs);
    return findPassages(this.#database, who, { ...question, text, vector });
  }

  sources(who: KnowledgeReader): Promise<SourceGroup[]> {
    return listSources(this.#database, who);
  }

  /** Removes all that may be seen there and comes from these sources; returns the sources. */
  remove(who: KnowledgeReader, sources: SourceChoice): Promise<string[]> {
    return removeKnowledge(this.#database, who, sources);
  }
}
