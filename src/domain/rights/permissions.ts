import { UserError } from "../../base/lib/errors.ts";
import type { RoomId, UserId } from "../../base/lib/ids.ts";
import { isRoomId, isServerName, isUserId, splitUserId } from "../../base/lib/matrix-id.ts";

/** Rights of a person; each level includes the one before. */
export const levels = ["none", "chat", "use", "operate", "admin"] as const;
export type Level = (typeof levels)[number];

/** Levels by actor: a full user id, a pattern of user ids, a room id (its members) or a server name (its users). */
export type Permissions = Readonly<Record<string, Level>>;

/** Kinds of actors, from the most specific to the least. */
const kinds = ["user", "pattern", "room", "server"] as const;
type ActorKind = (typeof kinds)[number];

/** Kind of an actor; undefined when the text is none, such as a display name with a space in it. */
export const actorKind = (actor: string): ActorKind | undefined => {
  if (actor.startsWith("@")) {
    if (!actor.includes("*")) return isUserId(actor) ? "user" : undefined;
    return /^@[!-9;-~]+:[A-Za-z0-9.:[\]*-]+$/.test(actor) ? "pattern" : undefined;
  }
  if (isRoomId(actor)) return "room";
  return isServerName(actor) ? "server" : undefined;
};

/**
 * True if a permission may be given to it. A name without a dot, a colon or an `@` is more likely somebody's display
 * name than a homeserver.
 */
export const isActor = (text: string): boolean =>
  actorKind(text) !== undefined && (actorKind(text) !== "server" || /[.:]|^localhost$/.test(text));

export const includesLevel = (level: Level, needed: Level): boolean => levels.indexOf(level) >= levels.indexOf(needed);

/** @throws UserError that tells a person which right is missing */
export const requireLevel = (level: Level, needed: Level): void => {
  if (!includesLevel(level, needed))
    throw new UserError(`To do this you need the right to ${needed}; you have: ${level}.`);
};

export const higher = (one: Level, other: Level): Level => (includesLevel(one, other) ? one : other);

/**
 * Finds the level that the permissions give to `userId`; undefined when no rule fits. Only ids count, never display
 * names. The most specific rule wins: user id, pattern (of two the one with more letters), room, server. Of equals the
 * lower level wins.
 * @param memberOf tells if the user is a joined member of the room
 */
export const ruleFor = (
  permissions: Permissions,
  userId: UserId,
  memberOf: (roomId: RoomId) => boolean,
): Level | undefined => {
  if (!isUserId(userId)) return undefined;
  const [best] = Object.entries(permissions)
    .flatMap(([actor, level]) => {
      const kind = actorKind(actor);
      if (!kind || !fits(kind, actor, userId, memberOf)) return [];
      const letters = kind === "pattern" ? actor.replaceAll("*", "").length : 0;
      return { rank: kinds.indexOf(kind), letters, level };
    })
    .sort((a, b) => a.rank - b.rank || b.letters - a.letters || levels.indexOf(a.level) - levels.indexOf(b.level));
  return best?.level;
};

/** Level of `userId`: where no rule fits, none. */
export const levelOf = (...who: Parameters<typeof ruleFor>): Level => ruleFor(...who) ?? "none";

const fits = (kind: ActorKind, actor: string, userId: UserId, memberOf: (roomId: RoomId) => boolean): boolean => {
  switch (kind) {
    case "user":
      return actor === userId;
    case "pattern":
      return fitsPattern(actor as UserId, userId);
    case "room":
      return memberOf(actor as RoomId);
    case "server":
      return actor === splitUserId(userId).server;
  }
};

/** Localpart and server are matched apart, so that no `*` reaches over the colon between them. */
const fitsPattern = (pattern: UserId, userId: UserId): boolean => {
  const wanted = splitUserId(pattern);
  const given = splitUserId(userId);
  return matches(wanted.localpart, given.localpart) && matches(wanted.server, given.server);
};

/** True if `text` is `pattern` with any text in place of each `*`; time is at most the product of their lengths. */
const matches = (pattern: string, text: string): boolean => {
  const [first = "", ...rest] = pattern.split("*");
  const last = rest.pop();
  if (last === undefined) return text === first;
  if (!text.startsWith(first)) return false;
  let at = first.length;
  for (const part of rest) {
    const found = text.indexOf(part, at);
    if (found < 0) return false;
    at = found + part.length;
  }
  return text.length - last.length >= at && text.endsWith(last);
};
