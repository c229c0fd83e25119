import type { UserId } from "../../base/lib/ids.ts";
import { isObject } from "../../base/lib/json.ts";

const memberships = ["join", "invite", "leave", "ban", "knock"] as const;
type Membership = (typeof memberships)[number];

/** Content of m.room.member; the state key is the user it is about. */
export interface Member {
  readonly membership: Membership;
  readonly displayName: string | undefined;
  /** An invite to a direct chat. */
  readonly isDirect: boolean;
  readonly reason: string | undefined;
}

/** Fields of the wrong type are as good as absent, here and below: anybody may write anything. */
export const readMember = (content: unknown): Member | undefined => {
  if (!isObject(content)) return undefined;
  const membership = memberships.find((known) => known === content.membership);
  return (
    membership && {
      membership,
      displayName: textOf(content.displayname),
      isDirect: content.is_direct === true,
      reason: textOf(content.reason),
    }
  );
};

/** Content of m.room.power_levels, with the specification's defaults. */
export interface PowerLevels {
  readonly users: ReadonlyMap<string, number>;
  readonly usersDefault: number;
  readonly events: ReadonlyMap<string, number>;
  readonly eventsDefault: number;
  readonly stateDefault: number;
  /** To take away what others said. */
  readonly redact: number;
  readonly invite: number;
}

export const readPowerLevels = (content: unknown): PowerLevels => {
  const levels = isObject(content) ? content : {};
  return {
    users: levelsByName(levels.users),
    usersDefault: levelOf(levels.users_default) ?? 0,
    events: levelsByName(levels.events),
    eventsDefault: levelOf(levels.events_default) ?? 0,
    stateDefault: levelOf(levels.state_default) ?? 50,
    redact: levelOf(levels.redact) ?? 50,
    invite: levelOf(levels.invite) ?? 0,
  };
};

/** A user's power, creators of rooms of version 12 or later excepted: theirs is infinite, and not written here. */
export const powerOf = (levels: PowerLevels, userId: UserId): number => levels.users.get(userId) ?? levels.usersDefault;

export const readRoomName = (content: unknown): string | undefined =>
  isObject(content) ? textOf(content.name) : undefined;

export const readTopic = (content: unknown): string | undefined =>
  isObject(content) ? textOf(content.topic) : undefined;

const textOf = (value: unknown): string | undefined =>
  typeof value === "string" && value.trim() !== "" ? value : undefined;

const levelsByName = (value: unknown): Map<string, number> =>
  new Map(
    Object.entries(isObject(value) ? value : {}).flatMap(([name, written]) => {
      const level = levelOf(written);
      return level === undefined ? [] : [[name, level]];
    }),
  );

/** Rooms of version 9 and older may write levels as text. */
const levelOf = (value: unknown): number | undefined => {
  const level = typeof value === "string" && /^\s*[+-]?\d+\s*$/.test(value) ? Number(value) : value;
  return Number.isSafeInteger(level) ? Number(level) : undefined;
};
