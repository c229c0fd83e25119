import type { RoomId, UserId } from "./ids.ts";

/** Grammar of the Matrix specification, appendix "Server name". */
const serverName = String.raw`(?:[A-Za-z0-9][A-Za-z0-9.-]*|\[[0-9A-Fa-f:.]+\])(?::\d{1,5})?`;
const patterns = {
  server: new RegExp(`^${serverName}$`),
  user: new RegExp(`^@[!-)+-9;-~]+:${serverName}$`),
  room: new RegExp(`^![^\\s:]+(?::${serverName})?$`),
};
const lengthMax = 255;

export const isServerName = (text: string): boolean => text.length <= lengthMax && patterns.server.test(text);

/**
 * A full user id in printable ASCII without `*`, which stands for any text in patterns. Ids of historical rooms may
 * hold other characters: they never count as full.
 */
export const isUserId = (text: string): text is UserId => text.length <= lengthMax && patterns.user.test(text);

export const isRoomId = (text: string): text is RoomId =>
  Buffer.byteLength(text) <= lengthMax && patterns.room.test(text);

/** A name that an agent can have: part of a user id, and a folder. */
export const isAgentName = (text: string): boolean => /^(?!\.+$)[a-z0-9._=+-]{1,200}$/.test(text);

/** A user id cut at its first colon, the only one that the localpart ends with. */
export const splitUserId = (userId: UserId): { readonly localpart: string; readonly server: string } => {
  const colon = userId.indexOf(":");
  return { localpart: userId.slice(1, colon), server: userId.slice(colon + 1) };
};
