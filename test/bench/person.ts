import { type ApiRequest, type Credentials, callMatrix, register } from "../support/matrix-api.ts";

/** A message as it stands in a room. */
export interface Said {
  readonly sender: string;
  readonly body: string;
}

interface TimelineEvent {
  readonly type: string;
  readonly sender: string;
  readonly state_key?: string;
  readonly content: { readonly body?: string; readonly membership?: string };
}

interface SyncAnswer {
  readonly next_batch: string;
  readonly rooms?: {
    readonly join?: Readonly<Record<string, { readonly timeline: { readonly events: readonly TimelineEvent[] } }>>;
  };
}

const filter = JSON.stringify({ presence: { types: [] }, room: { timeline: { limit: 100 } } });

/** A user who talks and listens, and costs as little as possible: what is measured is not the client. */
export class Person {
  readonly id: string;
  /** When each message or membership was first seen, on the clock of `performance.now()`. */
  readonly #seen = new Map<string, number>();
  readonly #url: string;
  readonly #credentials: Credentials;
  #isStopped = false;
  #news = Promise.withResolvers<void>();
  #sent = 0;

  private constructor(url: string, credentials: Credentials) {
    this.id = credentials.userId;
    this.#url = url;
    this.#credentials = credentials;
  }

  /** Registers the user, who listens from now on, until the homeserver ends. */
  static async create(url: string, name: string): Promise<Person> {
    const person = new Person(url, await register(url, name));
    void person.#listen();
    return person;
  }

  stop(): void {
    this.#isStopped = true;
  }

  api(method: "GET" | "PUT" | "POST", path: string, request?: ApiRequest): Promise<Record<string, unknown>> {
    return callMatrix(this.#url, this.#credentials.accessToken, method, path, request);
  }

  /** A direct room with somebody who joins by himself. @returns its id */
  async roomWith(userId: string): Promise<string> {
    const room = await this.room({ is_direct: true, invite: [userId] });
    await this.joins(room, userId);
    return room;
  }

  /** Makes a room. @returns its id */
  async room(more: object = {}): Promise<string> {
    const body = { preset: "trusted_private_chat", ...more };
    return String((await this.api("POST", "v3/createRoom", { body })).room_id);
  }

  async invite(roomId: string, userId: string): Promise<void> {
    await this.api("POST", `v3/rooms/${encodeURIComponent(roomId)}/invite`, { body: { user_id: userId } });
  }

  /** When somebody was seen to join. */
  joins(roomId: string, userId: string): Promise<number> {
    return this.#until(`${roomId} join ${userId}`, 20_000);
  }

  async join(roomId: string): Promise<void> {
    await this.api("POST", `v3/join/${encodeURIComponent(roomId)}`, { body: {} });
  }

  async say(roomId: string, body: string): Promise<void> {
    const path = `v3/rooms/${encodeURIComponent(roomId)}/send/m.room.message/${++this.#sent}`;
    await this.api("PUT", path, { body: { msgtype: "m.text", body } });
  }

  /** When a message with this body was seen; rejects after `within` milliseconds. */
  hears(sender: string, body: string, within = 30_000): Promise<number> {
    return this.#until(`${sender} ${body}`, within);
  }

  /** Of these bodies, those that somebody was heard saying, and when the last of them came. */
  heard(sender: string, bodies: readonly string[]): { count: number; last: number } {
    const times = bodies.flatMap((body) => this.#seen.get(`${sender} ${body}`) ?? []);
    return { count: times.length, last: Math.max(...times) };
  }

  /** The room's messages, oldest first. */
  async messages(roomId: string): Promise<Said[]> {
    const query = { dir: "f", limit: "1000", filter: JSON.stringify({ types: ["m.room.message"] }) };
    const said: Said[] = [];
    for (let from: unknown; ; ) {
      const page = await this.api("GET", `v3/rooms/${encodeURIComponent(roomId)}/messages`, {
        query: { ...query, ...(from ? { from: String(from) } : {}) },
      });
      for (const { sender, content } of page.chunk as TimelineEvent[]) said.push({ sender, body: content.body ?? "" });
      from = page.end;
      if (!from) return said;
    }
  }

  async #listen(): Promise<void> {
    let since: string | undefined;
    while (!this.#isStopped) {
      const query = { filter, ...(since === undefined ? {} : { since, timeout: "20000" }) };
      const sync = await this.api("GET", "v3/sync", { query }).catch(() => undefined);
      if (sync) since = this.#take(sync as unknown as SyncAnswer);
    }
  }

  #take({ next_batch, rooms }: SyncAnswer): string {
    const now = performance.now();
    for (const [room, { timeline }] of Object.entries(rooms?.join ?? {}))
      for (const { type, sender, state_key, content } of timeline.events) {
        const what =
          type === "m.room.member" ? `${room} ${content.membership} ${state_key}` : `${sender} ${content.body}`;
        if (!this.#seen.has(what)) this.#seen.set(what, now);
      }
    this.#news.resolve();
    this.#news = Promise.withResolvers();
    return next_batch;
  }

  async #until(what: string, within: number): Promise<number> {
    const late = AbortSignal.timeout(within);
    const lateness = new Promise<never>((_, reject) =>
      late.addEventListener("abort", () => reject(new Error(`${this.id} waited ${within} ms for: ${what}`))),
    );
    for (;;) {
      const at = this.#seen.get(what);
      if (at !== undefined) return at;
      await Promise.race([this.#news.promise, lateness]);
    }
  }
}
