import type { AgentName, EventId, UserId } from "../../base/lib/ids.ts";
import { isObject } from "../../base/lib/json.ts";
import { isUserId, splitUserId } from "../../base/lib/matrix-id.ts";
import { saysSomethingElse } from "./formatted.ts";

/** A message as agents read it. */
export interface Message {
  readonly msgtype: string;
  /** The one text that counts, without the quotation that old clients put before a reply. */
  readonly body: string;
  /** The formatted text, which most people see instead, says something else. */
  readonly formattedDiffers: boolean;
  /** undefined: the client does not know mentions, so that names in the text count. */
  readonly mentions: { readonly userIds: readonly UserId[]; readonly includesRoom: boolean } | undefined;
  readonly threadId: EventId | undefined;
  readonly replyTo: EventId | undefined;
  /** An edit of this message: everything above is its new content. */
  readonly replaces: EventId | undefined;
}

/** Mentions beyond this number are not looked at. */
const mentionsMax = 50;

/**
 * Reads an event of type m.room.message, or a sticker, whose `msgtype` is then its type; undefined when it is neither,
 * is malformed, or is a malformed edit.
 */
export const readMessage = (event: { readonly type: string; readonly content: unknown }): Message | undefined => {
  const { type } = event;
  if (!isObject(event.content)) return undefined;
  const content = type === "m.sticker" ? { ...event.content, msgtype: type } : event.content;
  if (type !== "m.room.message" && type !== "m.sticker") return undefined;
  const relation = isObject(content["m.relates_to"]) ? content["m.relates_to"] : {};
  const target = eventIdOf(relation.event_id);
  if (type === "m.room.message" && relation.rel_type === "m.replace") {
    const text = target && readText(content["m.new_content"], false);
    return text && { ...text, threadId: undefined, replyTo: undefined, replaces: target };
  }
  const inReplyTo = isObject(relation["m.in_reply_to"]) ? eventIdOf(relation["m.in_reply_to"].event_id) : undefined;
  const text = readText(content, inReplyTo !== undefined);
  const threadId = relation.rel_type === "m.thread" ? target : undefined;
  const fallsBack = threadId !== undefined && relation.is_falling_back === true;
  return text && { ...text, threadId, replyTo: fallsBack ? undefined : inReplyTo, replaces: undefined };
};

/** The message that an event edits; undefined if it is no edit that `readMessage` would read as one. */
export const editTarget = ({ type, content }: { readonly type: string; readonly content: unknown }) => {
  if (type !== "m.room.message" || !isObject(content) || !isObject(content["m.relates_to"])) return undefined;
  const { rel_type, event_id } = content["m.relates_to"];
  return rel_type === "m.replace" && isText(content["m.new_content"]) ? eventIdOf(event_id) : undefined;
};

/** Content that says something: the two fields that every message has. */
const isText = (content: unknown): content is { msgtype: string; body: string } & Record<string, unknown> =>
  isObject(content) && typeof content.msgtype === "string" && typeof content.body === "string";

const readText = (content: unknown, isReply: boolean) => {
  if (!isText(content)) return undefined;
  const { msgtype, body, format, formatted_body: formatted } = content;
  const text = isReply ? withoutQuotation(body) : body;
  const hasFormatted = format === "org.matrix.custom.html" && typeof formatted === "string";
  return {
    msgtype,
    body: text,
    formattedDiffers: hasFormatted && saysSomethingElse(formatted, text, isReply),
    mentions: mentionsOf(content["m.mentions"]),
  };
};

/** The reply fallback of the specification before 1.13: quoted lines, the first with the sender, and an empty line. */
const withoutQuotation = (body: string): string => body.replace(/^> (?:\* )?<@[^>\n]+>.*\n(?:>.*\n)*\n/, "");

const mentionsOf = (value: unknown): Message["mentions"] => {
  if (!isObject(value)) return undefined;
  const listed: unknown[] = Array.isArray(value.user_ids) ? value.user_ids : [];
  const userIds = listed.filter((id) => typeof id === "string").filter(isUserId);
  return { userIds: [...new Set(userIds)].slice(0, mentionsMax), includesRoom: value.room === true };
};

const eventIdOf = (value: unknown): EventId | undefined =>
  typeof value === "string" && /^\$.{1,254}$/.test(value) ? (value as EventId) : undefined;

/**
 * True if a text begins with one of the names, and so speaks to whoever bears them; an `@` may stand before it.
 * For clients that send no mentions.
 * @param names full user ids, display names, agent names
 */
export const isAddressedByName = (body: string, names: readonly string[]): boolean => {
  const text = body.trimStart().normalize("NFC").toLowerCase();
  return names.some((name) => {
    const wanted = name.trim().normalize("NFC").toLowerCase();
    if (wanted === "" || /\p{Default_Ignorable_Code_Point}|\p{Cc}/u.test(wanted)) return false;
    const rest = [wanted, `@${wanted}`].find((form) => text.startsWith(form));
    return rest !== undefined && endsName.test(text.slice(rest.length));
  });
};

/**
 * Matches the end of a name: no letter may follow, and nothing that makes it the beginning of a longer name or user id.
 */
const endsName = /^(?![\p{L}\p{M}\p{N}_]|[-.'’=/+][\p{L}\p{N}_]|:\d)/u;

/** Name of the agent of this bridge whose user it is; undefined for people, and for namesakes on other servers. */
export const agentName = (userId: UserId, serverName: string): AgentName | undefined => {
  const { localpart, server } = splitUserId(userId);
  const [, name] = /^agent_(.+)$/.exec(localpart) ?? [];
  return server === serverName ? (name as AgentName | undefined) : undefined;
};
