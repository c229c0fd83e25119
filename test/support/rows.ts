import type { Database } from "../../src/adapters/database/connection.ts";
import { nobodyElse } from "../../src/adapters/database/notify.ts";
import type { AgentName, Conversation, EventId, RoomId, UserId } from "../../src/base/lib/ids.ts";
import type { Permissions } from "../../src/domain/rights/permissions.ts";
import { Rights } from "../../src/domain/rights/rights.ts";
import { type AgentRow, Agents } from "../../src/domain/tables/agents.ts";
import { type Effects, settle, type WakeDraft } from "../../src/domain/tables/effects.ts";
import { type EventSource, Events, type IncomingEvent, type StoredEvent } from "../../src/domain/tables/events.ts";
import type { OperationCall } from "../../src/domain/tables/operation-record.ts";
import { PermissionTable } from "../../src/domain/tables/permissions.ts";
import { Rooms } from "../../src/domain/tables/rooms.ts";

let count = 0;

/** Ids that no other test of the run has, so that tests share a database without hearing of each other. */
export const newRoom = (): RoomId => `!room${++count}:test` as RoomId;
export const newUser = (): UserId => `@user${++count}:test` as UserId;
export const newEventId = (): EventId => `$event${++count}` as EventId;
export const newKey = (): string => `key ${++count}`;

const hello = { msgtype: "m.text", body: "hello" };

/** A message, except for what `fields` say. */
export const incoming = (fields: Partial<IncomingEvent> & Pick<IncomingEvent, "roomId">): IncomingEvent => ({
  eventId: newEventId(),
  type: "m.room.message",
  stateKey: undefined,
  sender: "@someone:test" as UserId,
  sentAt: new Date("2026-01-01T12:00:00Z"),
  content: hello,
  replaces: undefined,
  redacts: undefined,
  ...fields,
});

/** Stores a message, or what `fields` make of it, and gives it as it is read back. */
export async function storeEvent(
  database: Database,
  fields: Partial<IncomingEvent> & Pick<IncomingEvent, "roomId">,
  source: EventSource = "push",
): Promise<StoredEvent> {
  const events = new Events(database);
  const event = incoming(fields);
  await events.store([event], source);
  const stored = await events.find(event.eventId);
  if (!stored) throw new Error(`${event.eventId} was not stored`);
  return stored;
}

/** Stores an event as above and routes it with these effects. */
export async function settleEvent(
  database: Database,
  fields: Partial<IncomingEvent> & Pick<IncomingEvent, "roomId">,
  effects: Effects = { shownChars: 5 },
): Promise<StoredEvent> {
  const event = await storeEvent(database, fields);
  await settle(database, event, effects);
  return event;
}

export async function addAgent(database: Database, owner = newUser()): Promise<AgentRow> {
  const agents = new Agents(database);
  const name = `agent${++count}` as AgentName;
  await agents.add({ name, userId: `@agent_${name}:test` as UserId, owner, suffix: "k3f9", deviceId: "DEVICE" });
  const agent = await agents.find(name);
  if (!agent) throw new Error(`${name} was not added`);
  return agent;
}

/** Rights as a configuration gives them. */
export async function rightsOf(database: Database, permissions: Permissions): Promise<Rights> {
  const rights = new Rights(new PermissionTable(database), new Rooms(database), nobodyElse);
  await rights.configure(permissions);
  return rights;
}

/** Stores this user's membership, as its event would, at this place in the room's order or at its end. */
export async function setMember(
  database: Database,
  roomId: RoomId,
  userId: UserId,
  membership: "join" | "invite" | "leave",
  position?: number,
): Promise<StoredEvent> {
  const kind = userId.startsWith("@agent_") ? "agent" : "human";
  const member = { userId, membership, displayName: undefined, isDirect: false, kind } as const;
  const fields = { roomId, sender: userId, type: "m.room.member", stateKey: userId, content: { membership } };
  return settleEvent(database, { ...fields, position }, { member, shownChars: 0 });
}

/** Stores a message of `requester` that wakes the conversation's agent. */
export async function wake(
  database: Database,
  { agent, roomId }: Conversation,
  fields: Partial<WakeDraft> = {},
  body = hello.body,
): Promise<StoredEvent> {
  const sender = fields.requester ?? ("@someone:test" as UserId);
  const event = await storeEvent(database, { roomId, sender, content: { ...hello, body } });
  const { eventId, position } = event;
  const draft: WakeDraft = { agent, roomId, reason: "new event", key: newKey(), eventId, position, chain: eventId };
  await settle(database, event, { shownChars: 5, wakes: [{ ...draft, requester: sender, ...fields }] });
  return event;
}

/** A call of a tool, except for what `fields` say. */
export const call = (fields: Partial<OperationCall> = {}): OperationCall => ({
  key: newKey(),
  tool: "Tool",
  kind: "create",
  summary: "a summary",
  input: { path: "a" },
  inputHash: "hash",
  requesters: ["@someone:test" as UserId],
  ...fields,
});
