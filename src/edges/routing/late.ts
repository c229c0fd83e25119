import type { Agent } from "../../domain/agents/agent.ts";
import type { Effects } from "../../domain/tables/effects.ts";
import type { Events, StoredEvent } from "../../domain/tables/events.ts";
import type { Outbox } from "../../domain/tables/outbox.ts";
import type { RoomContext } from "../../domain/tables/room-context.ts";

/** True if a missed event is history: it was said before the agent came, or before something that it has said since. */
export async function comesTooLate(
  event: StoredEvent,
  agent: Agent,
  room: RoomContext,
  events: Pick<Events, "answeredLater">,
): Promise<boolean> {
  const since = room.agents.find(({ userId }) => userId === agent.userId)?.since ?? 0;
  return event.position < since || events.answeredLater(agent, event);
}

/** Leaves out of a missed event's effects what was said to it already, before the database was restored. */
export async function unsaid(
  { roomId, source }: StoredEvent,
  effects: Effects,
  table: Pick<Outbox, "echoesOf">,
): Promise<Effects> {
  const { outbox = [] } = effects;
  if (source !== "sweep" || outbox.length === 0) return effects;
  const said = await table.echoesOf(
    roomId,
    outbox.map(({ key }) => key),
  );
  return said.size === 0 ? effects : { ...effects, outbox: outbox.filter(({ key }) => !said.has(key)) };
}
