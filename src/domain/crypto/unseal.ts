import {
  DecryptionErrorCode,
  MegolmDecryptionError,
  RoomId as OlmRoomId,
  ShieldStateCode,
} from "@matrix-org/matrix-sdk-crypto-wasm";
import { readEvent } from "../../adapters/matrix/events.ts";
import { isObject } from "../../base/lib/json.ts";
import type { StoredEvent } from "../tables/events.ts";
import { megolm } from "../tables/secrecy.ts";
import type { Device } from "./device.ts";
import { decryptionSettings } from "./pull.ts";

/** An encrypted event as a device of ours reads it. */
export type Unsealed =
  | { readonly state: "read"; readonly type: string; readonly content: Record<string, unknown> }
  /** Its key may still come. */
  | { readonly state: "sealed"; readonly sessionId: string; readonly reason: SealedReason; readonly said?: string }
  | { readonly state: "unreadable"; readonly reason: string };

/** `withheld`: the sender's client does not give us the key; `early`: it was given from a later message on. */
type SealedReason = "missing" | "early" | "withheld";

/** Types of events that may be inside of an encrypted one: others act on the room, or cannot be encrypted. */
const inside: ReadonlySet<string> = new Set(["m.room.message", "m.sticker", "m.reaction"]);

/** Session with which an event is encrypted; undefined where it is no ciphertext that we could ever read. */
export const sessionOf = ({ content }: Pick<StoredEvent, "content">): string | undefined => {
  const { algorithm, ciphertext, session_id: session } = content;
  const isWhole = algorithm === megolm && typeof ciphertext === "string" && typeof session === "string";
  return isWhole && session.length <= 255 ? session : undefined;
};

/** Reads an event. Rejects where the device's store does. */
export async function unseal(
  { machine, userId }: Pick<Device, "machine" | "userId">,
  event: StoredEvent,
): Promise<Unsealed> {
  const sessionId = sessionOf(event);
  if (sessionId === undefined) return { state: "unreadable", reason: "it is no ciphertext" };
  const raw = {
    event_id: event.eventId,
    room_id: event.roomId,
    sender: event.sender,
    type: event.type,
    origin_server_ts: event.sentAt.getTime(),
    content: event.content,
  };
  try {
    const settings = decryptionSettings();
    const clear = await machine.decryptRoomEvent(JSON.stringify(raw), new OlmRoomId(event.roomId), settings);
    // The machine says of others' sessions if they are somebody else's, and takes its own from anybody.
    const isOwn = clear.senderCurve25519Key === machine.identityKeys.curve25519.toBase64();
    const isForeign = clear.shieldState(false).code === ShieldStateCode.MismatchedSender;
    if (isForeign || (isOwn && event.sender !== userId))
      return { state: "unreadable", reason: "it is somebody else's" };
    return readClear(raw, JSON.parse(clear.event));
  } catch (error) {
    if (!(error instanceof MegolmDecryptionError)) throw error;
    if (error.withheldCode !== undefined)
      return { state: "sealed", sessionId, reason: "withheld", said: error.maybe_withheld ?? error.withheldCode };
    if (error.code === DecryptionErrorCode.MissingRoomKey) return { state: "sealed", sessionId, reason: "missing" };
    if (error.code === DecryptionErrorCode.UnknownMessageIndex) return { state: "sealed", sessionId, reason: "early" };
    return { state: "unreadable", reason: `error ${error.code}` };
  }
}

/** The limits for what is inside are those for what comes in clear. */
function readClear(raw: Record<string, unknown>, clear: unknown): Unsealed {
  if (!isObject(clear) || "state_key" in clear) return { state: "unreadable", reason: "it holds state" };
  const read = readEvent({ ...raw, type: clear.type, content: clear.content });
  const event = read.isValid ? read.event : read.remains;
  if (!event) return { state: "unreadable", reason: read.isValid ? "it holds nothing" : read.reason };
  const { type, content } = event;
  if (!inside.has(type)) return { state: "unreadable", reason: "it holds an event of another kind" };
  return { state: "read", type, content };
}
