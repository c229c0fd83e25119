import { memoryOfEvent } from "../../domain/memory/observe.ts";
import type { Events, IncomingEvent, PendingEvent } from "../../domain/tables/events.ts";
import type { EventMemory, Memory } from "../../domain/tables/interactions.ts";
import type { RoomContext } from "../../domain/tables/room-context.ts";
import { isCard } from "../../engine/operations/approval-card.ts";
import type { KindOf } from "./project.ts";

interface Parts {
  readonly events: Pick<Events, "find">;
  readonly kindOf: KindOf;
}

/** Reads what agents remember of an event that they are shown. */
export async function memoryOf(
  event: PendingEvent,
  room: Pick<RoomContext, "kind">,
  { events, kindOf }: Parts,
): Promise<Memory | undefined> {
  if (room.kind !== "chat") return undefined;
  // Its edit may have come before it.
  const now = event.isOvertaken && !event.isEncrypted ? await events.find(event.eventId) : undefined;
  return memoryOfSaid(now ?? event, kindOf);
}

/** Reads what agents remember of what was said before one of them came. `isCommand`: true for a person's command. */
export const memoriesOfPast = (
  past: readonly IncomingEvent[],
  { isCommand, kindOf }: Pick<Parts, "kindOf"> & { readonly isCommand: (said: Said) => boolean },
): EventMemory[] =>
  past.flatMap(({ content, eventId, sender, type, replaces }) => {
    const said = { sender, type, content: content as Record<string, unknown> };
    const memory = replaces === undefined && !isCommand(said) ? memoryOfSaid(said, kindOf) : undefined;
    return memory ? [{ eventId, memory }] : [];
  });

type Said = Parameters<typeof memoryOfEvent>[0] & Pick<PendingEvent, "sender">;

/** Reads what agents remember of an event of a room; nothing of what the bridge itself says. */
export const memoryOfSaid = (event: Said, kindOf: KindOf): Memory | undefined => {
  const kind = kindOf(event.sender);
  const isNotice = kind === "agent" && (event.content.msgtype === "m.notice" || isCard(event.content));
  return kind === "bot" || isNotice ? undefined : memoryOfEvent(event, kind === "agent");
};
