import type { EventId, RoomId, UserId } from "../../base/lib/ids.ts";
import { isObject } from "../../base/lib/json.ts";
import { toStorable } from "../../base/lib/storable.ts";

/** A room event as homeservers send it to clients and application services (format of the Matrix specification). */
export interface ClientEvent {
  readonly event_id: EventId;
  readonly room_id: RoomId;
  /** Not necessarily a full user id by today's grammar: historical ids hold any character. */
  readonly sender: UserId;
  readonly type: string;
  /** Present, though perhaps empty, in state events. */
  readonly state_key?: string;
  readonly content: Readonly<Record<string, unknown>>;
  /** Milliseconds since 1970, as the sender's server claims; always a date. */
  readonly origin_server_ts: number;
  readonly unsigned?: Readonly<Record<string, unknown>>;
  /** Event that a redaction redacts, in old and new room versions alike. */
  readonly redacts?: EventId;
}

type EventReading =
  | { readonly isValid: true; readonly event: ClientEvent }
  /** `remains`: of a message, an event that tells that it came, and to whom it was said. */
  | { readonly isValid: false; readonly reason: string; readonly remains?: ClientEvent };

/** Limits of the specification, in bytes. */
const idBytesMax = 255;
const eventBytesMax = 65_536;
const depthMax = 100;
/** The last millisecond of the year 9999. */
const latest = 253_402_300_799_999;

/**
 * Reads what claims to be an event, without what we do not keep. What the database could not hold as it is, is
 * refused with the reason. Members are the exception: walls depend on who is in a room, so that nobody may hide by
 * joining with an unreadable name, or at no time; of such an event the membership remains.
 */
export const readEvent = (value: unknown): EventReading => {
  if (!isObject(value)) return misfit("it is no object");
  const { event_id, room_id, sender, type, state_key, content, origin_server_ts, unsigned } = value;
  if (!isId(event_id, "$")) return misfit("event_id is no event id");
  if (!isId(room_id, "!")) return misfit("room_id is no room id");
  if (!isId(sender, "@") || !sender.includes(":")) return misfit("sender is no user id");
  if (!isShort(type) || type === "") return misfit("type is no event type");
  if (state_key !== undefined && !isShort(state_key)) return misfit("state_key is no short text");
  if (typeof origin_server_ts !== "number" && type !== "m.room.member") return misfit("origin_server_ts is no time");
  if (!isObject(content)) return misfit("content is no object");
  const redacts = value.redacts ?? (type === "m.room.redaction" ? content.redacts : undefined);
  const event = (kept: ClientEvent["content"]): ClientEvent => ({
    event_id: event_id as EventId,
    room_id: room_id as RoomId,
    sender: sender as UserId,
    type,
    ...(state_key !== undefined && { state_key }),
    content: kept,
    origin_server_ts:
      typeof origin_server_ts === "number" ? Math.trunc(Math.min(Math.max(origin_server_ts, 0), latest)) : 0,
    ...(isObject(unsigned) && !unstorable(unsigned) && { unsigned }),
    ...(isId(redacts, "$") && { redacts: redacts as EventId }),
  });
  const reason = unstorable(content);
  if (reason === undefined) return { isValid: true, event: event(content) };
  const { membership } = content;
  if (type === "m.room.member" && isShort(membership)) return { isValid: true, event: event({ membership }) };
  const isMessage = type === "m.room.message" && state_key === undefined;
  return { ...misfit(`content ${reason}`), ...(isMessage && { remains: event(remainsOf(content)) }) };
};

const misfit = (reason: string) => ({ isValid: false, reason }) as const;

/** By which programs know what remains of a message that cannot be stored. */
const unreadable = "org.clevernet.unreadable";
export const isUnreadable = (content: Readonly<Record<string, unknown>>): boolean => unreadable in content;

/** Characters of a text that tell whom it addresses. */
const addressChars = 300;
const mentionsKept = 100;

/** Keeps of a message's content what tells to whom it was said. */
export const remainsOf = ({
  body,
  msgtype,
  "m.mentions": mentions,
}: ClientEvent["content"]): ClientEvent["content"] => {
  const ids: unknown[] = isObject(mentions) && Array.isArray(mentions.user_ids) ? mentions.user_ids : [];
  return {
    msgtype: msgtype === "m.notice" ? msgtype : "m.text",
    body: typeof body === "string" ? toStorable(body.slice(0, addressChars)) : "",
    ...(isObject(mentions) && { "m.mentions": { user_ids: ids.filter((id) => isId(id, "@")).slice(0, mentionsKept) } }),
    [unreadable]: true,
  };
};

const isShort = (value: unknown): value is string =>
  typeof value === "string" && Buffer.byteLength(value) <= idBytesMax && !unstorableText(value);

const isId = (value: unknown, sigil: string): value is string =>
  isShort(value) && value.length > 1 && value.startsWith(sigil);

/** Names what PostgreSQL's text and jsonb refuse in a text. */
const unstorableText = (text: string): string | undefined => {
  if (text.includes("\0")) return "has a NUL in it";
  return text.isWellFormed() ? undefined : "has half a character in it";
};

const unstorable = (value: object): string | undefined =>
  unstorableWithin(value, 0) ??
  (Buffer.byteLength(JSON.stringify(value)) > eventBytesMax ? `has more than ${eventBytesMax} bytes` : undefined);

const unstorableWithin = (value: unknown, depth: number): string | undefined => {
  if (typeof value === "string") return unstorableText(value);
  if (typeof value !== "object" || value === null) return undefined;
  if (depth > depthMax) return "is nested too deeply";
  for (const [key, inner] of Object.entries(value)) {
    const reason = unstorableText(key) ?? unstorableWithin(inner, depth + 1);
    if (reason !== undefined) return reason;
  }
  return undefined;
};
