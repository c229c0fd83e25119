import { createHash, randomBytes } from "node:crypto";

declare const brand: unique symbol;
type Branded<Name extends string> = string & { readonly [brand]: Name };

/** A full Matrix user id, `@localpart:server`. Unique in the whole federation. */
export type UserId = Branded<"UserId">;
/** A Matrix room id, `!opaque[:server]`. Room versions 12 and later have no server part. */
export type RoomId = Branded<"RoomId">;
/** A Matrix event id, `$opaque`. Unique in the whole federation. */
export type EventId = Branded<"EventId">;
/** The agent's name: the localpart of its user without the prefix `agent_`. Unique in one bridge. */
export type AgentName = Branded<"AgentName">;

/** Conversation key of an agent's *home*: the conversation without a room. */
export const HOME = "" as RoomId;

/** An agent in a room: the unit of context and of turns. */
export interface Conversation {
  readonly agent: AgentName;
  /** `HOME` for the conversation without a room. */
  readonly roomId: RoomId;
}

/** Random text for tokens and passwords: `bytes` bytes as lower-case hexadecimal. */
export const secret = (bytes = 32): string => randomBytes(bytes).toString("hex");

/** A short deterministic name for a list of parts: the same parts give the same text, other parts another. */
export const digest = (...parts: (string | number)[]): string =>
  createHash("sha256").update(JSON.stringify(parts)).digest("base64url");

/** Digest of a file's content. */
export const bytesDigest = (bytes: Uint8Array): string => createHash("sha256").update(bytes).digest("base64url");
