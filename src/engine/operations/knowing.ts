import { UserError } from "../../base/lib/errors.ts";
import { originOfFile, sectionsAsKnowledge } from "../../domain/files/as-knowledge.ts";
import { includesLevel, type Level } from "../../domain/rights/permissions.ts";
import type { Keeping } from "../../domain/tables/knowledge.ts";
import type { KnowledgeReader } from "../../domain/tables/knowledge-query.ts";
import type { ToolContext } from "./tool.ts";

/** Reader of knowledge for whom a call is made. */
export const readerFor = (
  { agent: { name, owner, userId }, requesters, roomId }: Pick<ToolContext, "agent" | "requesters" | "roomId">,
  level: Level,
): KnowledgeReader => ({ agent: name, userId, owner, here: roomId, requesters, uses: includesLevel(level, "use") });

/** Conversation in which a call keeps something, and the person for whom. */
export const keepingOf = ({
  agent,
  requesters,
  roomId,
}: Pick<ToolContext, "agent" | "requesters" | "roomId">): Keeping => ({
  agent: agent.name,
  roomId,
  requester: requesters[0] ?? null,
});

/** A text file that is, or could be, knowledge. */
interface KnowableFile {
  readonly entries: number;
  /** The file is longer than what becomes knowledge. */
  readonly isCut: boolean;
  readonly keep: () => Promise<void>;
}

/** Reads a text file, and cuts it into sections that `keep` makes knowledge of the agent. */
export async function knowFile(
  path: string,
  { files, knowledge, ...context }: Pick<ToolContext, "agent" | "files" | "knowledge" | "requesters" | "roomId">,
): Promise<KnowableFile> {
  const file = await files.read(path);
  if (file.text === null) throw new UserError(`${files.named(path)} is no text: it is ${file.contentType}.`);
  const { entries, isCut, prefix } = sectionsAsKnowledge(file, file.text);
  const origin = originOfFile(keepingOf(context), file, await files.sourcesOf(path));
  return { entries: entries.length, isCut, keep: () => knowledge.kept.keep(entries, origin, prefix) };
}

/** Counts entries, in words. */
export const entriesText = (count: number): string => `${count} ${count === 1 ? "entry" : "entries"} of knowledge`;
