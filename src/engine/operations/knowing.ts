import { UserError } from "../../base/lib/errors.ts";
import { pageSourcePrefix } from "../../base/lib/web-address.ts";
import { requirePages, webTaint } from "../../domain/desk/page-source.ts";
import { originOfFile, sectionsAsKnowledge } from "../../domain/files/as-knowledge.ts";
import { sectionsOf } from "../../domain/files/sections.ts";
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

/** A text that is, or could be, knowledge. */
interface KnowableText {
  readonly entries: number;
  /** It is longer than what becomes knowledge. */
  readonly isCut: boolean;
  readonly keep: () => Promise<void>;
}

/** Reads a text file, and cuts it into sections that `keep` makes knowledge of the agent. */
export async function knowFile(
  path: string,
  { files, knowledge, ...context }: Pick<ToolContext, "agent" | "files" | "knowledge" | "requesters" | "roomId">,
): Promise<KnowableText> {
  const file = await files.read(path);
  if (file.text === null) throw new UserError(`${files.named(path)} is no text: it is ${file.contentType}.`);
  const { entries, isCut, prefix } = sectionsAsKnowledge(file, file.text);
  const origin = originOfFile(keepingOf(context), file, await files.sourcesOf(path));
  return { entries: entries.length, isCut, keep: () => knowledge.kept.keep(entries, origin, prefix) };
}

/** Longest address of which knowledge is kept: an index holds it. */
const addressMost = 2_000;

type PageContext = Pick<ToolContext, "agent" | "knowledge" | "pages" | "requesters" | "roomId" | "signal" | "sources">;

/**
 * Reads a page of the web, and cuts it into sections that `keep` makes knowledge of the agent, in place of all that it has
 * of this page. The wall around it is that of a text which is given here: the address may tell something itself.
 */
export async function knowPage(
  address: string,
  { knowledge, pages, signal, sources, ...context }: PageContext,
): Promise<KnowableText & { readonly taint: readonly string[] }> {
  const { agent, roomId } = context;
  const prefix = pageSourcePrefix(address);
  if (prefix === undefined) throw new UserError(`This is no address of a page: ${address.slice(0, 200)}.`);
  if (prefix.length > addressMost)
    throw new UserError(`An address of more than ${addressMost} characters is too long to be kept.`);
  if (!agent.settings.tools.includes("web"))
    throw new UserError("This agent does not open pages: `web` is not among its `tools`.");
  const { isCut, text, title, url } = await requirePages(pages).read(address, { form: "markdown" }, signal);
  const entries = sectionsOf(text).map((section, index) => ({ source: `${prefix}${index}]`, text: section }));
  if (entries.length === 0) throw new UserError(`There is no text at ${address}: nothing was changed.`);
  const taint = [...new Set([webTaint(address), webTaint(url)])];
  const origin = {
    ...keepingOf(context),
    title: title ?? new URL(url).host,
    sources: [...new Set([...sources, roomId])],
    taint,
    eventId: null,
  };
  return { entries: entries.length, isCut, keep: () => knowledge.kept.keep(entries, origin, prefix), taint };
}

/** Counts entries, in words. */
export const entriesText = (count: number): string => `${count} ${count === 1 ? "entry" : "entries"} of knowledge`;
