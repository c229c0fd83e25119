import type { Bridge } from "matrix-appservice-bridge";
import { messageOf } from "../lib/errors.ts";
import type { EventId, RoomId, UserId } from "../lib/ids.ts";

/** As whom a request is made. The device makes the homeserver remember transaction ids across its own restart. */
export interface Sender {
  readonly userId: UserId;
  readonly deviceId?: string;
}

/** Nobody waits longer, whatever he is told: a timer that is set to more than 24 days rings at once. */
const longestRetryMs = 24 * 60 * 60_000;
/** Statuses of what another attempt may get through. */
const mayChange: ReadonlySet<number> = new Set([401, 408, 429]);

/** The homeserver said no, or could not be reached. */
export class HomeserverError extends Error {
  override readonly name = "HomeserverError";
  /** HTTP status; 0 when there was no answer. */
  readonly status: number;
  readonly errcode: string;
  readonly retryAfterMs: number | undefined;

  constructor(what: string, thrown: unknown) {
    const answer = (typeof thrown === "object" && thrown !== null ? thrown : {}) as {
      statusCode?: number;
      errcode?: string;
      error?: string;
      retryAfterMs?: number;
      headers?: Readonly<Record<string, unknown>>;
    };
    const status = answer.statusCode ?? 0;
    const said = status === 0 ? messageOf(thrown) : `${status} ${answer.errcode ?? ""} ${answer.error ?? ""}`.trim();
    super(`${what}: ${said}`, { cause: thrown });
    this.status = status;
    this.errcode = answer.errcode ?? "";
    // The library reads the header only where the body is Matrix's own.
    const ms = Number(answer.retryAfterMs ?? Number(answer.headers?.["retry-after"]) * 1_000);
    this.retryAfterMs = ms > 0 ? Math.min(ms, longestRetryMs) : undefined;
  }

  /** Nobody answered, or whatever stands before the homeserver: its own 502, by which it tells of others, has a code. */
  get away(): boolean {
    return this.status === 0 || (this.status >= 502 && this.errcode === "");
  }

  /**
   * Trying again cannot help: the homeserver refuses the request itself. What stands before a homeserver that is away
   * may answer 404, and knows no errcode; what is too large for it stays so.
   */
  get final(): boolean {
    if (this.status < 400 || this.status >= 500 || mayChange.has(this.status)) return false;
    return this.errcode !== "" || this.status === 413;
  }

  /** The homeserver does not know the device of the sender any more. Before Matrix 1.17 it had another word for it. */
  get lacksDevice(): boolean {
    return this.status === 400 && /^M_EXCLUSIVE$|M_UNKNOWN_DEVICE$/.test(this.errcode);
  }
}

type Json = Record<string, unknown>;
type Query = Record<string, string | number | undefined>;

const v3 = "/_matrix/client/v3";
const enc = encodeURIComponent;

/** The client-server API as any user of the application service, the bot included. */
export class MatrixClient {
  readonly #bridge: Bridge;
  readonly #id: string;
  /** Told when the homeserver did not answer, or answered as if it were gone. */
  onUnreachable: () => void = () => {};
  /** Told of every request: the HTTP status, 0 when there was no answer. */
  onAnswered: (status: number) => void = () => {};

  constructor(bridge: Bridge, applicationServiceId: string) {
    this.#bridge = bridge;
    this.#id = applicationServiceId;
  }

  get botUserId(): UserId {
    return this.#bridge.botUserId as UserId;
  }

  /** Where the homeserver is, and the token of the application service. */
  get access(): { readonly url: string; readonly token: string } {
    const { homeserverUrl: url, accessToken: token } = this.#bridge.getBot().getClient();
    return { url, token };
  }

  /** A device that the homeserver has deleted, as it may do with old ones, is made anew. */
  async request(
    method: "GET" | "POST" | "PUT",
    path: string,
    as?: Sender,
    body?: Json,
    query: Query = {},
    timeoutMs = 60_000,
  ): Promise<Json> {
    const sender = { user_id: as?.userId, device_id: as?.deviceId };
    const ask = () => this.#ask(method, path, defined({ ...query, ...sender }), body, timeoutMs);
    return ask().catch(async (error: unknown) => {
      if (!(error instanceof HomeserverError && error.lacksDevice && as?.deviceId !== undefined)) throw error;
      await this.putDevice(as.userId, as.deviceId);
      return ask();
    });
  }

  async #ask(method: "GET" | "POST" | "PUT", path: string, query: Query, body: Json | undefined, timeoutMs: number) {
    try {
      const answer: unknown = await this.#bridge.getBot().getClient().doRequest(method, path, query, body, timeoutMs);
      if (typeof answer !== "object" || answer === null) throw new Error("the answer is no JSON");
      this.onAnswered(200);
      return answer as Json;
    } catch (thrown) {
      const error = new HomeserverError(`${method} ${path}`, thrown);
      this.onAnswered(error.status);
      if (error.away) this.onUnreachable();
      throw error;
    }
  }

  /** Sends an event; the same sender, device and transaction id give the same event, for 24 hours. */
  async send(as: Sender, roomId: RoomId, type: string, transactionId: string, content: Json): Promise<EventId> {
    const path = `${v3}/rooms/${enc(roomId)}/send/${enc(type)}/${enc(transactionId)}`;
    return (await this.request("PUT", path, as, content)).event_id as EventId;
  }

  async sendState(as: Sender, roomId: RoomId, type: string, stateKey: string, content: Json): Promise<EventId> {
    const path = `${v3}/rooms/${enc(roomId)}/state/${enc(type)}/${enc(stateKey)}`;
    return (await this.request("PUT", path, as, content)).event_id as EventId;
  }

  async join(as: Sender, roomId: RoomId): Promise<void> {
    await this.request("POST", `${v3}/join/${enc(roomId)}`, as, {});
  }

  async leave(as: Sender, roomId: RoomId, reason: string): Promise<void> {
    await this.request("POST", `${v3}/rooms/${enc(roomId)}/leave`, as, { reason });
  }

  async invite(as: Sender, roomId: RoomId, userId: UserId): Promise<void> {
    await this.request("POST", `${v3}/rooms/${enc(roomId)}/invite`, as, { user_id: userId });
  }

  async kick(as: Sender, roomId: RoomId, userId: UserId, reason: string): Promise<void> {
    await this.request("POST", `${v3}/rooms/${enc(roomId)}/kick`, as, { user_id: userId, reason });
  }

  /** Ends the user for good: it leaves its rooms, and its id cannot be used again. `erase` hides what it said. */
  async deactivate(userId: UserId, erase: boolean): Promise<void> {
    await this.request("POST", `${v3}/account/deactivate`, { userId }, { erase });
  }

  async typing(as: Sender, roomId: RoomId, timeoutMs: number): Promise<void> {
    const body = timeoutMs > 0 ? { typing: true, timeout: timeoutMs } : { typing: false };
    await this.request("PUT", `${v3}/rooms/${enc(roomId)}/typing/${enc(as.userId)}`, as, body);
  }

  /** Says that the user has read the room, threads included, up to an event. */
  async receipt(as: Sender, roomId: RoomId, eventId: EventId): Promise<void> {
    await this.request("POST", `${v3}/rooms/${enc(roomId)}/receipt/m.read/${enc(eventId)}`, as, {});
  }

  /** All current state events of a room, as the homeserver gives them. */
  async roomState(as: Sender, roomId: RoomId): Promise<unknown[]> {
    const state: unknown = await this.request("GET", `${v3}/rooms/${enc(roomId)}/state`, as);
    return Array.isArray(state) ? state : [];
  }

  /** A page of a room's timeline towards the past, newest first; without `from`, from its end. */
  async messagesBefore(
    as: Sender,
    roomId: RoomId,
    from: string | undefined,
    limit: number,
  ): Promise<{ events: unknown[]; next: string | undefined }> {
    const page = await this.request("GET", `${v3}/rooms/${enc(roomId)}/messages`, as, undefined, {
      dir: "b",
      from,
      limit,
    });
    return {
      events: Array.isArray(page.chunk) ? page.chunk : [],
      next: typeof page.end === "string" ? page.end : undefined,
    };
  }

  /** Uploads a file whole; returns its mxc:// address. */
  async upload(as: Sender, content: Buffer, contentType: string, name: string): Promise<string> {
    const client = this.#bridge.getBot().getClient();
    try {
      const answer = (await client.doRequest(
        "POST",
        "/_matrix/media/v3/upload",
        { filename: name, user_id: as.userId },
        content,
        60_000,
        false,
        contentType,
      )) as { readonly content_uri?: unknown };
      if (typeof answer.content_uri !== "string") throw new Error("the answer names no file");
      return answer.content_uri;
    } catch (thrown) {
      throw new HomeserverError("uploading a file", thrown);
    }
  }

  async createRoom(as: Sender, room: Json): Promise<RoomId> {
    return (await this.request("POST", `${v3}/createRoom`, as, room)).room_id as RoomId;
  }

  /**
   * The bot's room under an alias of our namespace, made if there is none: the alias makes it one room, even if the
   * process dies before it has written down which.
   */
  async ownRoom(aliasName: string, serverName: string, room: Json): Promise<RoomId> {
    const find = async () =>
      (await this.request("GET", `${v3}/directory/room/${enc(`#${aliasName}:${serverName}`)}`)).room_id as RoomId;
    try {
      return await find();
    } catch (error) {
      if (!(error instanceof HomeserverError && error.status === 404)) throw error;
    }
    return this.createRoom({ userId: this.botUserId }, { ...room, room_alias_name: aliasName }).catch(
      (error: unknown) => {
        // Another process has made it meanwhile.
        if (error instanceof HomeserverError && error.errcode === "M_ROOM_IN_USE") return find();
        throw error;
      },
    );
  }

  /** Makes the user exist. Safe to repeat. */
  async register(userId: UserId): Promise<void> {
    try {
      await this.#bridge.getIntent(userId).ensureRegistered();
    } catch (thrown) {
      throw new HomeserverError(`registering ${userId}`, thrown);
    }
  }

  /** Makes the device exist (MSC4190: an application service may, without login). */
  async putDevice(userId: UserId, deviceId: string): Promise<void> {
    await this.request("PUT", `${v3}/devices/${enc(deviceId)}`, { userId }, { display_name: "Clevernet" });
  }

  async setProfile(userId: UserId, displayName: string, avatar: string | null): Promise<void> {
    const intent = this.#bridge.getIntent(userId);
    try {
      await intent.setDisplayName(displayName);
      // The empty address takes away the one that was there.
      await intent.setAvatarUrl(avatar ?? "");
    } catch (thrown) {
      throw new HomeserverError(`profile of ${userId}`, thrown);
    }
  }

  /** Asks the homeserver to send us what it holds back, at once. */
  async ping(): Promise<void> {
    await this.request("POST", `/_matrix/client/v1/appservice/${enc(this.#id)}/ping`, undefined, {}, {}, 15_000);
  }

  async whoami(): Promise<UserId> {
    return (await this.request("GET", `${v3}/account/whoami`)).user_id as UserId;
  }

  /** Whether it answers, be it to refuse us: what is wrong between us then shows with the first real request. */
  async alive(): Promise<boolean> {
    try {
      await this.request("GET", "/_matrix/client/versions", undefined, undefined, {}, 5_000);
      return true;
    } catch (error) {
      return error instanceof HomeserverError && error.errcode !== "" && error.status < 500;
    }
  }

  /** What a user missed since a token, without waiting; see `sweep.ts`. */
  async sync(userId: UserId, since: string | undefined, filter: Json): Promise<Json> {
    const query = { since, filter: JSON.stringify(filter), timeout: 0, set_presence: "offline" };
    return this.request("GET", `${v3}/sync`, { userId }, undefined, query);
  }
}

const defined = (query: Query): Query =>
  Object.fromEntries(Object.entries(query).filter(([, value]) => value !== undefined));
