import { type Conversation, digest, type UserId } from "../../base/lib/ids.ts";
import type { Agent } from "../../domain/agents/agent.ts";
import { noAnswer, type Submodels, submodelCharsMax } from "../../domain/budget/submodel.ts";
import { activityEntry } from "../../domain/files/activity.ts";
import { workingFile } from "../../domain/files/working-files.ts";
import type { Compactions } from "../../domain/tables/compaction.ts";
import type { Turn } from "../../domain/tables/turns.ts";
import { type BesideParts, BesideTurns } from "./beside-turns.ts";

/** Bytes beyond which a LOG.md is compacted. */
export const activityBytesMax = 51_200;

const request =
  "Summarize the key events and outcomes from this log into a coherent narrative. Keep names, dates, numbers and whatever people have corrected or asked to be remembered.";

/** Importance of what was archived: like that of an action. */
const importance = 0.7;

interface CompactorParts extends BesideParts {
  readonly submodels: Submodels;
  readonly compactions: Compactions;
}

/**
 * Summarises a LOG.md that has grown too long, in the background: nobody waits for it. It is all done in the one
 * statement behind the model's answer. Whatever prevents that, the next look at the file begins anew.
 */
export class Compactor extends BesideTurns {
  readonly #parts: CompactorParts;

  constructor(parts: CompactorParts) {
    super(parts, "LOG.md is not compacted");
    this.#parts = parts;
  }

  /** Compacts the LOG.md of a conversation if it has too many bytes; those for whom the agent works there pay. */
  consider(agent: Agent, { roomId, requesters }: Pick<Turn, "roomId" | "requesters">, bytes: number): void {
    if (bytes <= activityBytesMax) return;
    const conversation = { agent: agent.name, roomId };
    const payers = requesters.length > 0 ? requesters : [agent.owner];
    this.begin(conversation, () => this.#compact(agent, conversation, payers));
  }

  async #compact(agent: Agent, conversation: Conversation, requesters: readonly UserId[]): Promise<boolean> {
    const { clock, compactions, submodels } = this.#parts;
    const { roomId } = conversation;
    const file = workingFile(conversation, "LOG.md");
    const found = await compactions.read(file, submodelCharsMax);
    // It was compacted after whoever considers it had counted its bytes.
    if (!found || found.bytes <= activityBytesMax) return true;
    const prefix = found.text.slice(0, found.text.lastIndexOf("\n") + 1);
    if (prefix === "") return false;
    const now = clock.now();
    const key = digest("compaction", agent.userId, roomId, now.toISOString());
    const submodel = submodels.for({ agent, roomId, requesters, key, signal: this.stopped.signal });
    const summary = await submodel.ask(request, prefix);
    if (summary === noAnswer || this.stopped.signal.aborted) return false;
    return compactions.compact(conversation, {
      ...file,
      prefix,
      lines: activityEntry(now, "SUMMARY", summary),
      memory: { kind: "summary", tool: "LOG.md", text: summary, importance },
    });
  }
}
