import { setTimeout as sleep } from "node:timers/promises";
import {
  ClientEvent,
  createClient,
  type MatrixClient,
  type MatrixEvent,
  MatrixEventEvent,
  PendingEventOrdering,
} from "matrix-js-sdk";
import { logger } from "matrix-js-sdk/lib/logger.js";
import { type ApiRequest, type Credentials, callMatrix, register } from "./matrix-api.ts";
import { eventually } from "./poll.ts";

// The client's `logger` option does not reach every part of the SDK: the others have the common one, or its children.
Object.assign(logger, { methodFactory: () => () => {} });
if ("setLevel" in logger && typeof logger.setLevel === "function") logger.setLevel("silent");
const silent = { trace() {}, debug() {}, info() {}, warn() {}, error() {}, getChild: () => silent };

/** An `m.room.message` event as the homeserver gave it. */
export interface Message {
  readonly id: string;
  readonly sender: string;
  /** Empty where it has none, as after a redaction. */
  readonly body: string;
  readonly content: Readonly<Record<string, unknown>>;
}

type Content = Readonly<Record<string, unknown>>;
type Waiting = { readonly what?: string; readonly within?: number };

/** Registers a new account and starts a real client (matrix-js-sdk) for it; resolves after the first sync. */
export async function createUser(homeserver: { readonly url: string }, name: string): Promise<TestUser> {
  const user = new TestUser(homeserver.url, await register(homeserver.url, name));
  await user.start();
  return user;
}

export class TestUser {
  readonly id: string;
  readonly client: MatrixClient;
  readonly credentials: Credentials;
  readonly #url: string;
  readonly #seen = new Map<string, Message[]>();
  #news = Promise.withResolvers<void>();

  /** @param fetchFn by which the client asks, in place of the usual one */
  constructor(url: string, credentials: Credentials, fetchFn: typeof fetch = fetch) {
    const { userId, accessToken, deviceId } = credentials;
    this.id = userId;
    this.credentials = credentials;
    this.#url = url;
    this.client = createClient({ baseUrl: url, userId, accessToken, deviceId, fetchFn, logger: silent });
    this.client.on(ClientEvent.Event, (event) => this.#see(event));
    this.client.on(MatrixEventEvent.Decrypted, (event) => this.#see(event));
  }

  async start(): Promise<void> {
    await this.client.startClient({ initialSyncLimit: 50, pendingEventOrdering: PendingEventOrdering.Detached });
    await eventually(() => this.client.isInitialSyncComplete(), { what: `the first sync of ${this.id}` });
  }

  stop(): void {
    this.client.stopClient();
  }

  /** The client-server API as this user; `path` begins behind `/_matrix/client/`. */
  api(method: "GET" | "PUT" | "POST" | "DELETE", path: string, request?: ApiRequest): Promise<Record<string, unknown>> {
    return callMatrix(this.#url, this.credentials.accessToken, method, path, request);
  }

  /** @returns the room's id */
  async createRoom(options: Content = {}): Promise<string> {
    const body = { preset: "private_chat", ...options };
    return String((await this.api("POST", "v3/createRoom", { body })).room_id);
  }

  /** A room for two, as clients make it when one person writes to another. @returns its id */
  createDirectRoom(other: string): Promise<string> {
    return this.createRoom({ preset: "trusted_private_chat", is_direct: true, invite: [other] });
  }

  async invite(roomId: string, userId: string): Promise<void> {
    await this.client.invite(roomId, userId);
  }

  async join(roomId: string): Promise<void> {
    await this.client.joinRoom(roomId);
  }

  async leave(roomId: string): Promise<void> {
    await this.client.leave(roomId);
  }

  /** All sending methods return the id of the event. */
  say(roomId: string, body: string, extraContent: Content = {}): Promise<string> {
    return this.send(roomId, "m.room.message", { msgtype: "m.text", body, ...extraContent });
  }

  /** Says something that mentions a user, as clients do. */
  mention(roomId: string, userId: string, body: string, extraContent: Content = {}): Promise<string> {
    return this.say(roomId, body, { "m.mentions": { user_ids: [userId] }, ...extraContent });
  }

  reply(roomId: string, toEventId: string, body: string): Promise<string> {
    return this.say(roomId, body, { "m.relates_to": { "m.in_reply_to": { event_id: toEventId } } });
  }

  /** Says something in the thread that begins at `rootId`. */
  thread(roomId: string, rootId: string, body: string, extraContent: Content = {}): Promise<string> {
    const relation = { rel_type: "m.thread", event_id: rootId, is_falling_back: true };
    const relates = { ...relation, "m.in_reply_to": { event_id: rootId } };
    return this.say(roomId, body, { "m.relates_to": relates, ...extraContent });
  }

  edit(roomId: string, eventId: string, body: string): Promise<string> {
    return this.say(roomId, `* ${body}`, {
      "m.new_content": { msgtype: "m.text", body },
      "m.relates_to": { rel_type: "m.replace", event_id: eventId },
    });
  }

  react(roomId: string, eventId: string, key: string): Promise<string> {
    return this.send(roomId, "m.reaction", { "m.relates_to": { rel_type: "m.annotation", event_id: eventId, key } });
  }

  async redact(roomId: string, eventId: string): Promise<string> {
    return (await this.client.redactEvent(roomId, eventId)).event_id;
  }

  async send(roomId: string, type: string, content: Content): Promise<string> {
    const path = `v3/rooms/${encodeURIComponent(roomId)}/send/${type}/${this.client.makeTxnId()}`;
    return String((await this.api("PUT", path, { body: content })).event_id);
  }

  /** Shows this user as typing, or no longer. */
  async setTyping(roomId: string, isTyping: boolean): Promise<void> {
    await this.client.sendTyping(roomId, isTyping, 20_000);
  }

  /** Ids of the users who this client shows as typing now. */
  typing(roomId: string): string[] {
    const members = this.client.getRoom(roomId)?.getMembers() ?? [];
    return members.filter(({ typing: isTyping }) => isTyping).map(({ userId }) => userId);
  }

  /** Waits until this client knows that somebody (itself by default) is `membership` in a room. */
  async waitForMembership(roomId: string, membership: string, userId = this.id): Promise<void> {
    const now = () => this.client.getRoom(roomId)?.getMember(userId)?.membership;
    const what = `${userId} to be "${membership}" in ${roomId}`;
    await this.#until(
      () => now() === membership,
      () => `${now()}`,
      { what },
    );
  }

  /** The first message that fulfils the condition among all that this client has received, or will. */
  waitForMessage(roomId: string, condition: (message: Message) => boolean, waiting: Waiting = {}): Promise<Message> {
    const seen = () => this.#seen.get(roomId) ?? [];
    const instead = () => seen().map(({ sender, body }) => `\n  ${sender}: ${body.slice(0, 200)}`);
    const what = `a message with ${condition} in ${roomId}`;
    return this.#until(
      () => seen().find(condition),
      () => `${instead().join("") || "nothing"}`,
      { what, ...waiting },
    );
  }

  /** Messages that this client has received and read, in the order in which it could; an event that it cannot read too. */
  heard(roomId: string): readonly Message[] {
    return this.#seen.get(roomId) ?? [];
  }

  /** An event of a room, whole, as the homeserver has it. */
  event(roomId: string, eventId: string): Promise<Content> {
    return this.api("GET", `v3/rooms/${encodeURIComponent(roomId)}/event/${encodeURIComponent(eventId)}`);
  }

  /** All messages of a room, oldest first, as the homeserver has them. */
  async messages(roomId: string): Promise<Message[]> {
    const path = `v3/rooms/${encodeURIComponent(roomId)}/messages`;
    const query = { dir: "f", limit: "1000", filter: JSON.stringify({ types: ["m.room.message"] }) };
    const found: Message[] = [];
    for (let from: unknown; ; ) {
      const page = await this.api("GET", path, { query: { ...query, ...(from ? { from: String(from) } : {}) } });
      found.push(...(page.chunk as RawEvent[]).map(messageOf));
      from = page.end;
      if (!from) return found;
    }
  }

  #see(event: MatrixEvent): void {
    const roomId = event.getRoomId();
    if (roomId && event.getType() === "m.room.message") {
      const messages = this.#seen.get(roomId) ?? [];
      this.#seen.set(roomId, messages);
      messages.push(messageOf(structuredClone(event.getEffectiveEvent()) as unknown as RawEvent));
    }
    this.#news.resolve();
    this.#news = Promise.withResolvers();
  }

  async #until<Value>(look: () => Value | undefined | false, instead: () => string, waiting: Waiting): Promise<Value> {
    const { what, within = 15_000 } = waiting;
    const deadline = performance.now() + within;
    for (;;) {
      const seen = look();
      if (seen !== undefined && seen !== false) return seen;
      if (performance.now() > deadline) {
        throw new Error(`${this.id} waited ${within} ms for ${what}; instead it saw: ${instead()}`);
      }
      // After the homeserver was away the SDK waits long before it tries again.
      this.client.retryImmediately();
      await Promise.race([this.#news.promise, sleep(200)]);
    }
  }
}

interface RawEvent {
  readonly event_id: string;
  readonly sender: string;
  readonly content: Readonly<Record<string, unknown>>;
}

const messageOf = ({ event_id, sender, content }: RawEvent): Message => ({
  id: event_id,
  sender,
  body: typeof content.body === "string" ? content.body : "",
  content,
});
