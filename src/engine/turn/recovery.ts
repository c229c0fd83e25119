import { ModelError } from "../../adapters/model/failure.ts";
import type { Clock } from "../../base/lib/clock.ts";
import { digest } from "../../base/lib/ids.ts";
import { isTidying } from "../../base/prompt/default-mode.ts";
import { systemEvent } from "../../base/prompt/ephemeris.ts";
import { toStored } from "../../base/prompt/stored.ts";
import { type Agent, keepsState } from "../../domain/agents/agent.ts";
import { activityEntry } from "../../domain/files/activity.ts";
import type { FilePath } from "../../domain/files/path.ts";
import { workingFile } from "../../domain/files/working-files.ts";
import type { Recovery } from "../../domain/tables/turn-end.ts";
import type { Turn } from "../../domain/tables/turns.ts";
import type { OperationRequest } from "../operations/operation.ts";
import type { TurnState } from "./state.ts";

const instruction =
  "Your last turn here ended in an error, which is the last entry of LOG.md. Make a plan in NOW.md how to mend it, then carry it out.";

/** The LOG.md in which a call is noted; undefined for talk, and for agents that keep no working files. */
export const logFor = ({ agent, turn }: TurnState, { tool }: OperationRequest): FilePath | undefined =>
  keepsState(agent) && tool.isLogged !== false ? workingFile(turn, "LOG.md") : undefined;

/**
 * Makes entry and wake for a turn that ends in an error. Whoever is in the room reads LOG.md, so that the entry tells the kind
 * of error and no more. The same error wakes a conversation once an hour.
 */
export function recoveryFrom(agent: Agent, turn: Turn, error: unknown, clock: Clock): Recovery | undefined {
  if (!keepsState(agent)) return undefined;
  const now = clock.now();
  const kind = error instanceof ModelError ? `the model is ${error.kind}` : nameOf(error);
  const hour = now.toISOString().slice(0, 13);
  return {
    logTo: workingFile(turn, "LOG.md"),
    lines: activityEntry(now, "ERROR", `Turn ${turn.number} ended early: ${kind}.`),
    wake:
      mayMend(error) && !isTidying(turn)
        ? {
            key: digest("recovery", agent.userId, turn.roomId, kind, hour),
            note: toStored(systemEvent(now, instruction)),
          }
        : undefined,
  };
}

/** False where the model does not answer whatever is asked of it: another call would fail as this one did. */
const mayMend = (error: unknown): boolean => !(error instanceof ModelError) || error.kind === "refused";

const nameOf = (error: unknown): string =>
  `a defect of the bridge (${error instanceof Error ? error.name : "unknown"})`;
