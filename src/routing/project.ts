import type { StoredEvent } from "../database/events.ts";
import type { RoomSnapshot } from "../database/rooms.ts";
import type { Effects, MemberChange } from "../database/routing.ts";
import type { UserId } from "../lib/ids.ts";
import { readMember } from "../matrix/state.ts";

/** State that is kept for each room, with an empty state key. */
const keptState = new Set([
  "m.room.create",
  "m.room.name",
  "m.room.topic",
  "m.room.canonical_alias",
  "m.room.power_levels",
  "m.room.history_visibility",
  "m.room.encryption",
]);

/** State changes that agents see in the history. */
const shownState = new Set(["m.room.member", "m.room.name", "m.room.topic"]);

/** Tells agents, the bot and humans apart. */
export type KindOf = (userId: UserId) => MemberChange["kind"];

export const isShownState = (type: string): boolean => shownState.has(type);

/** What a state event changes in what we know of a room; nothing for other events. */
export function project(
  event: Pick<StoredEvent, "type" | "stateKey" | "content" | "sender">,
  kindOf: KindOf,
): Pick<Effects, "member" | "state"> {
  if (event.stateKey === null) return {};
  if (event.type === "m.room.member") {
    const member = readMember(event.content);
    if (!member) return {};
    const userId = event.stateKey as UserId;
    return {
      member: {
        userId,
        membership: member.membership,
        displayName: member.displayName,
        direct: member.direct,
        kind: kindOf(userId),
      },
    };
  }
  if (event.stateKey === "" && keptState.has(event.type)) {
    return { state: { type: event.type, content: event.content as never, sender: event.sender } };
  }
  return {};
}

/** The room's state as one snapshot, from its state events. */
export function snapshot(
  events: readonly Pick<StoredEvent, "type" | "stateKey" | "content" | "sender">[],
  kindOf: KindOf,
): RoomSnapshot {
  const projected = events.map((event) => project(event, kindOf));
  return {
    members: projected.flatMap(({ member }) => (member ? [member] : [])),
    state: projected.flatMap(({ state }) => (state ? [state] : [])),
  };
}
