import type { Database } from "../../adapters/database/connection.ts";
import type { RoomId, UserId } from "../../base/lib/ids.ts";
import type { Agent } from "../agents/agent.ts";
import { findUntrusted, type Trust } from "../rights/trust.ts";
import { type Recalled, recall, type Sought } from "../tables/recall-query.ts";
import { namesAround } from "../tables/surroundings.ts";
import { neutralise } from "./names.ts";
import { type EmbedderSource, embedQuestion } from "./question.ts";

/** A question to memory. */
export interface MemoryQuery
  extends Pick<Sought, "room" | "person" | "from" | "to" | "limit" | "except" | "shown" | "ownBefore" | "scoreLeast"> {
  readonly text: string;
  /** The person whose words these are: "I" and "my" are them. */
  readonly by?: UserId | undefined;
  /** Longest wait for a vector, in milliseconds; then words alone decide. */
  readonly patienceMs?: number;
}

/** Answer of memory to a question, with all that it makes of whoever reads it. */
interface MemoryAnswer {
  /** The best first. */
  readonly found: readonly Recalled[];
  readonly sources: readonly RoomId[];
  /** Untrusted texts among it. */
  readonly taint: readonly string[];
}

/** An agent that remembers. */
type Remembering = Pick<Agent, "name" | "userId" | "owner">;

interface Options extends Trust {
  readonly embedder: EmbedderSource;
  readonly ranking: () => "product" | "seed";
}

/** Longest question, in characters: of a longer one the end is asked, where a question mostly stands. */
const questionMost = 1_000;

/** The memory of all agents: finds what fits to a question, behind the walls of whoever asks. */
export class MemoryRecall {
  readonly #database: Database;
  readonly #options: Options;

  constructor(database: Database, options: Options) {
    this.#database = database;
    this.#options = options;
  }

  /** Recalls what fits best, behind the walls of a conversation of the agent. */
  async recall(agent: Remembering, here: RoomId, query: MemoryQuery): Promise<MemoryAnswer> {
    const { name, userId, owner } = agent;
    const text = query.text.slice(-questionMost);
    const { words, neutral, named } = neutralise(text, await namesAround(this.#database, userId), query.by);
    const vector = await embedQuestion(this.#options.embedder, neutral, query.patienceMs);
    const sought = { ...query, words, named, vector, ranking: this.#options.ranking() };
    const found = await recall(this.#database, { agent: name, userId, owner, here }, sought);
    return {
      found,
      sources: [...new Set(found.flatMap(({ sources }) => sources))],
      taint: await findUntrusted(
        found.flatMap(({ sender, taint }) => [sender, ...taint]),
        agent,
        this.#options,
      ),
    };
  }
}
