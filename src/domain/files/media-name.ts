import { digest, type EventId } from "../../base/lib/ids.ts";

const stemLength = 60;

/**
 * A file name for what an event carries: its sender's name for it without anything that a path, a shell or an eye
 * could stumble over, and a part that no other event has. The same event always gives the same name.
 * @param extension without a dot
 */
export const mediaName = (given: string, eventId: EventId, extension: string): string => {
  const plain = given.replace(/\p{Variation_Selector}/gu, "").normalize("NFC");
  const [last = ""] = plain.split(/[/\\]/).slice(-1);
  const stem = last
    .replace(/\.[A-Za-z0-9]{1,8}$/, "")
    .replace(/[^[\p{L}\p{M}\p{N}_.]--\p{Default_Ignorable_Code_Point}]+/gv, "-")
    .replace(/\.{2,}/g, ".")
    .replace(/^[-.\p{M}]+/u, "");
  const cut = [...stem]
    .slice(0, stemLength)
    .join("")
    .replace(/[-.]+$/, "");
  const unique = digest("media", eventId)
    .replace(/[^a-z0-9]/gi, "")
    .slice(0, 12)
    .toLowerCase();
  return `${cut === "" ? "file" : cut}-${unique}.${extension}`;
};
