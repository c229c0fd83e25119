import { readMember } from "../../adapters/matrix/state.ts";
import type { UserId } from "../../base/lib/ids.ts";
import type { StoredEvent } from "../../domain/tables/events.ts";
import type { MemberChange, Projection } from "../../domain/tables/projection.ts";
import type { RoomSnapshot } from "../../domain/tables/rooms.ts";

/** State that is kept for each room, with an empty state key. */
const keptState = new Set([
  "m.room.create",
  "m.room.name",
  "m.room.topic",
  "m.room.canonical_alias",
  "m.room.power_levels",
  "m.room.join_rules",
  "m.room.history_visibility",
  "m.room.encryption",
]);

/** State changes that agents see in the history. */
const shownState = new Set(["m.room.member", "m.room.name", "m.room.topic"]);

/** Tells agents, the bot and humans apart. */
export type KindOf = (userId: UserId) => MemberChange["kind"];

export const isShownState = (type: string): boolean => shownState.has(type);

/** Returns the change that a state event makes in what we know of a room; nothing for other events. */
export function project(
  event: Pick<StoredEvent, "type" | "stateKey" | "content" | "sender">,
  kindOf: KindOf,
): Pick<Projection, "member" | "state"> {
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
        isDirect: member.isDirect,
        kind: kindOf(userId),
      },
    };
  }
  if (event.stateKey === "" && keptState.has(event.type)) {
    return { state: { type: event.type, content: event.content as never, sender: event.sender } };
  }
  return {};
}

/** Types of events that are answered, or read by somebody else, although they may come as state. */
const spoken = new Set([
  "m.room.message",
  "m.sticker",
  "m.reaction",
  "m.room.redaction",
  "m.room.encryption",
  "m.room.encrypted",
]);

/** True if nothing may follow from a person's state event but its change in what is known of the room. */
export const isPlainState = (
  { type, stateKey, sender, source }: Pick<StoredEvent, "type" | "stateKey" | "sender" | "source">,
  kindOf: KindOf,
): boolean =>
  stateKey !== null &&
  source !== "history" &&
  !spoken.has(type) &&
  kindOf(sender) === "human" &&
  (type !== "m.room.member" || kindOf(stateKey as UserId) === "human");

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
