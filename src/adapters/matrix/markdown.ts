import { markerOf, openFence } from "../../base/lib/fence.ts";
import type { EventId, UserId } from "../../base/lib/ids.ts";
import { markdownIt, renderTokens, type Token } from "./html.ts";
import { withoutPreviews } from "./link-previews.ts";
import { relationTo, type ThreadPlace } from "./relation.ts";

interface MatrixText {
  /** The Markdown itself. */
  readonly body: string;
  /** Absent where the plain text looks the same. */
  readonly formatted?: string;
  /** Members whose ids stand in the text, code excepted. */
  readonly mentions: readonly UserId[];
}

/**
 * @param members who may be mentioned: others are not notified, whatever the text says
 */
export const toMatrixText = (text: string, members: readonly UserId[] = []): MatrixText => {
  const body = sendable(text);
  const tokens = markdownIt.parse(body, {});
  const isAllPlain = tokens.every((token) => /^paragraph_|^inline$/.test(token.type) && isPlain(token));
  const mentions = mentionsIn(tokens, members);
  if (isAllPlain) return { body, mentions };
  const html = renderTokens(tokens);
  const isOnlyParagraph = tokens.length === 3 && tokens[0]?.type === "paragraph_open";
  const formatted = isOnlyParagraph ? html.replace(/^<p>/, "").replace(/<\/p>$/, "") : html;
  return { body, formatted, mentions };
};

/** Text as a block of code: no run of backticks in it ends the block. */
export const fence = (text: string, language = ""): string => {
  const longest = Math.max(2, ...[...text.matchAll(/`+/g)].map(([run]) => run.length));
  const fence = "`".repeat(longest + 1);
  return `${fence}${language}\n${text}\n${fence}`;
};

/** One line of text as code within a line. */
export const inlineCode = (text: string): string => {
  const longest = Math.max(0, ...[...text.matchAll(/`+/g)].map(([run]) => run.length));
  const fence = "`".repeat(longest + 1);
  return longest > 0 || text.trim() !== text || text === "" ? `${fence} ${text} ${fence}` : `${fence}${text}${fence}`;
};

/** Half characters are refused by homeservers, NUL by PostgreSQL, and other controls show nothing. */
const sendable = (text: string): string =>
  text
    .toWellFormed()
    .replaceAll("\r\n", "\n")
    .replaceAll(/[\p{Cc}--[\n\t]]/gv, "\uFFFD");

/** A paragraph that reads the same with and without Markdown. */
const isPlain = ({ children, content }: Token): boolean => {
  const read = (children ?? []).map((child) => {
    if (child.type === "text") return child.content;
    return child.type === "softbreak" || child.type === "hardbreak" ? "\n" : "";
  });
  return read.join("") === content.replaceAll(/[ \t]*\n[ \t]*/g, "\n");
};

const mentionsIn = (tokens: readonly Token[], members: readonly UserId[]): UserId[] => {
  const known = new Set<string>(members);
  const texts = tokens.flatMap((token) => token.children ?? []).filter((token) => token.type === "text");
  const named = texts.flatMap(({ content }) =>
    [...content.matchAll(/(?<![\p{L}\p{N}_])@[^\s:@]+:[A-Za-z0-9.:[\]-]+/gu)].map(([id]) => id.replace(/[.:-]+$/, "")),
  );
  return [...new Set(named)].filter((id): id is UserId => known.has(id));
};

interface MessageDraft {
  /** At most 16,000 characters: see `splitText`. */
  readonly markdown: string;
  readonly thread?: ThreadPlace | undefined;
  readonly replyTo?: EventId | undefined;
  /** People who may be mentioned. */
  readonly members?: readonly UserId[];
  /** m.notice: asks for no attention, and wakes no bot. */
  readonly isNotice?: boolean;
  /** Unique for what is said, by which it is known again in the homeserver's echo. */
  readonly key: string;
}

/** Homeservers refuse events over 65,536 bytes; some are left for what they add. */
const contentBytesMax = 60_000;

/** Content of an m.room.message, complete: it is sent as it is. It mentions nobody by accident. */
export const messageContent = ({ markdown, thread, replyTo, members, isNotice, key }: MessageDraft) => {
  const { body, formatted, mentions } = toMatrixText(markdown, members);
  const plain = {
    msgtype: isNotice ? "m.notice" : "m.text",
    body,
    "m.mentions": mentions.length > 0 ? { user_ids: [...mentions] } : {},
    ...withoutPreviews,
    ...relationTo(thread, replyTo),
    "org.clevernet.key": key,
  };
  if (formatted === undefined) return plain;
  const content = { ...plain, format: "org.matrix.custom.html", formatted_body: formatted };
  return Buffer.byteLength(JSON.stringify(content)) > contentBytesMax ? plain : content;
};

/** The longest opening line of a code block that is repeated in the next part. */
const fenceMax = 64;

/**
 * Cuts Markdown into parts of at most `limit` UTF-16 units (16 or more): between paragraphs, else lines, else words,
 * else characters. The parts one after the other are the text, but that a code block which is cut is closed in one
 * part and opened again in the next.
 */
export const splitText = (text: string, limit: number): string[] => {
  const longest = Math.min(fenceMax, Math.floor(limit / 4));
  const parts: string[] = [];
  let rest = text;
  let opening = "";
  while (opening.length + rest.length > limit) {
    const cut = cutAt(rest, limit - opening.length - longest - 1);
    const part = opening + rest.slice(0, cut);
    const fence = openFence(part, longest);
    parts.push(fence === "" || part.endsWith("\n") ? part + markerOf(fence) : `${part}\n${markerOf(fence)}`);
    opening = fence === "" ? "" : `${fence}\n`;
    rest = rest.slice(cut);
  }
  return [...parts, opening + rest];
};

/** The last good place to cut within `room`, as long as the part is not left nearly empty. */
const cutAt = (text: string, room: number): number => {
  const window = text.slice(0, room);
  for (const separator of ["\n\n", "\n", " "]) {
    const at = window.lastIndexOf(separator);
    if (at >= room / 4) return at + separator.length;
  }
  const splitsCharacter = (text.codePointAt(room - 1) ?? 0) > 0xffff;
  return splitsCharacter ? room - 1 : room;
};
