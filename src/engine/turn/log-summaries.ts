import type { Database } from "../../adapters/database/connection.ts";
import { digest } from "../../base/lib/ids.ts";
import { logSummaryMax } from "../../base/prompt/log.ts";
import { beginning } from "../../base/prompt/measure.ts";
import { type Agent, keepsState } from "../../domain/agents/agent.ts";
import { noAnswer, type Submodels } from "../../domain/budget/submodel.ts";
import { prepareCut } from "../../domain/tables/log-summary.ts";
import type { Turn } from "../../domain/tables/turns.ts";
import type { Sight } from "../sight/view.ts";
import { type BesideParts, BesideTurns } from "./beside-turns.ts";

const importance = 0.7;

interface SummaryParts extends BesideParts {
  readonly submodels: Submodels;
  readonly database: Database;
}

/**
 * Prepares the cuts of logs in the background: what will leave the log of a conversation is summarised before there is no
 * more room for it, so that the log's beginning changes once, when it is cut. What prevents that costs the summary and
 * nothing else.
 */
export class LogSummaries extends BesideTurns {
  readonly #parts: SummaryParts;

  constructor(parts: SummaryParts) {
    super(parts, "the log is not summarised");
    this.#parts = parts;
  }

  /** Summarises what will leave the log, with the summary that stands before it; those for whom the turn works pay. */
  consider(agent: Agent, turn: Turn, sight: Pick<Sight, "leaving" | "sources" | "taint">): void {
    if (keepsState(agent)) this.begin(turn, () => this.#prepare(agent, turn, sight).then(() => true));
  }

  async #prepare(
    agent: Agent,
    turn: Turn,
    { leaving, sources, taint }: Pick<Sight, "leaving" | "sources" | "taint">,
  ): Promise<void> {
    if (!leaving) return;
    const { submodels, database } = this.#parts;
    const { former, lines, cut } = leaving;
    const most = logSummaryMax(agent.settings.approxContextCharsMax);
    const submodel = submodels.for({
      agent,
      roomId: turn.roomId,
      requesters: turn.requesters.length > 0 ? turn.requesters : [agent.owner],
      key: digest("log summary", agent.userId, turn.id, turn.salt),
      signal: this.stopped.signal,
    });
    const request = `Summarize in at most ${most} characters what happened here: who wanted what, what was decided, done and promised, with names, dates and numbers. Where the text begins with a former summary, take over what still matters of it.`;
    const answer = await submodel.ask(request, former === undefined ? lines : `Former summary: ${former}\n\n${lines}`);
    if (answer === noAnswer) throw new Error("the model has said nothing");
    if (this.stopped.signal.aborted) return;
    const text = beginning(answer, most);
    const memory = { kind: "summary", tool: "log", text, importance } as const;
    await prepareCut(database, { ...cut, turnId: turn.id, memory, text, sources, taint });
  }
}
