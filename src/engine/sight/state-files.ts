import type { RoomId } from "../../base/lib/ids.ts";
import { Repeats } from "../../base/lib/repeats.ts";
import { isTidying } from "../../base/prompt/default-mode.ts";
import { activityRead } from "../../base/prompt/state.ts";
import type { StateView } from "../../base/prompt/types.ts";
import { type Agent, keepsState } from "../../domain/agents/agent.ts";
import { formatPath } from "../../domain/files/path.ts";
import { workingFile } from "../../domain/files/working-files.ts";
import type { Seen } from "../../domain/tables/sight.ts";
import type { Look } from "../../domain/tables/sight-query.ts";
import type { Turn } from "../../domain/tables/turns.ts";

/** Characters of NOW.md that are read. */
const statusRead = 20_000;

/** Characters of facts.json that are read, of its end. */
const factsRead = 8_000;

/** Working files that a conversation is shown, where its agent keeps any. */
export function statePlaces(
  agent: Agent,
  { roomId, reason }: Pick<Turn, "reason" | "roomId">,
): NonNullable<Look["state"]> {
  if (!keepsState(agent)) return [];
  const { layout, approxContextCharsMax } = agent.settings;
  const conversation = { agent: agent.name, roomId };
  return [
    { ...workingFile(conversation, "NOW.md"), chars: statusRead },
    { ...workingFile(conversation, "LOG.md"), chars: activityRead(layout, approxContextCharsMax) },
    ...(isTidying({ reason }) ? [{ ...workingFile(conversation, "facts.json"), chars: factsRead }] : []),
  ];
}

/** The working files as the agent is shown them, without words that were redacted since its turn began. */
export function stateView(
  agent: Agent,
  { state: rows, redacted }: Pick<Seen, "redacted" | "state">,
): StateView | undefined {
  if (!keepsState(agent)) return undefined;
  const repeats = redacted.length > 0 ? new Repeats(redacted) : undefined;
  const file = (name: string) => {
    const row = rows.find(({ path }) => path.endsWith(`/${name}`));
    return row && { ...row, text: repeats?.blankLines(row.text) ?? row.text };
  };
  return { status: file("NOW.md"), activity: file("LOG.md"), facts: file("facts.json") };
}

/** Rooms and people whose content may be in them. */
export const stateSources = ({ state }: Pick<Seen, "state">): RoomId[] => state.flatMap(({ sources }) => sources);

/** Paths of those that hold untrusted text. */
export const stateTaint = ({ state }: Pick<Seen, "state">): string[] =>
  state.filter(({ isTainted }) => isTainted).map(formatPath);
