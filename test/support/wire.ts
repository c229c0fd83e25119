interface WireEvent {
  readonly event_id: string;
  readonly type: string;
  readonly sender: string;
  readonly content: Readonly<Record<string, unknown>>;
}

/** Index in its session's ratchet of a Megolm ciphertext: used twice, both messages can be read by whoever has one. */
export function ratchetIndex(ciphertext: string): number {
  const bytes = Buffer.from(ciphertext, "base64");
  if (bytes[0] !== 3 || bytes[1] !== 8) throw new Error("this is no Megolm ciphertext");
  let index = 0;
  for (let at = 2, shift = 0; ; at++, shift += 7) {
    const byte = bytes[at] ?? 0;
    index |= (byte & 127) << shift;
    if (byte < 128) return index;
  }
}

/**
 * Finds in a room's timeline, oldest event first, things that may never be there: something that one of ours said in plain
 * text once the room was encrypted, and two ciphertexts of one index.
 */
export function indiscretions(timeline: readonly WireEvent[], isOurs: (userId: string) => boolean): string[] {
  const found: string[] = [];
  const used = new Map<string, string>();
  let isEncrypted = false;
  for (const { event_id: id, type, sender, content } of timeline) {
    isEncrypted ||= type === "m.room.encryption";
    if (!isOurs(sender)) continue;
    const isPlain = type === "m.room.message" && content.body !== undefined && !("org.clevernet.plain" in content);
    if (isEncrypted && isPlain) found.push(`${id} of ${sender} is plain text in an encrypted room`);
    if (type !== "m.room.encrypted" || typeof content.ciphertext !== "string") continue;
    const place = `${content.session_id} ${ratchetIndex(content.ciphertext)}`;
    if (used.has(place)) found.push(`${id} and ${used.get(place)} of ${sender} are encrypted with one key`);
    used.set(place, id);
  }
  return found;
}
