import type { Bridge } from "matrix-appservice-bridge";
import type { EventId, RoomId, UserId } from "../../base/lib/ids.ts";
import { HomeserverError, idIn, listIn } from "./answer.ts";

/** User as whom a request is made. With a device the homeserver remembers transaction ids across its own restart. */
export interface Sender {
  readonly userId: UserId;
  readonly deviceId?: string;
}

/** Limit of a ping: a homeserver that reaches us does so at once. */
const pingMs = 4_000;
/** Limit of an upload, its answer included. */
const uploadMs = 300_000;

export { HomeserverError };

type Json = Record<string, unknown>;
type Query = Record<string, string | number | undefined>;
type Method = "DELETE" | "GET" | "POST" | "PUT";

type PageOfPast = { readonly from?: string | undefined; readonly limit: number; readonly types?: readonly string[] };

/** Parts that a request may have. */
interface RequestParts {
  /** Without a sender, the application service's own user asks: the bot. */
  readonly as?: Sender | undefined;
  readonly body?: Json | undefined;
  readonly query?: Query;
  readonly timeoutMs?: number;
}

/** An event on its way to a room. */
interface NewEvent {
  readonly type: string;
  readonly content: Json;
  /** One sender, device and id give one event, however often it is sent, for 24 hours. */
  readonly transactionId: string;
}

interface NewState {
  readonly type: string;
  readonly stateKey: string;
  readonly content: Json;
}

const v3 = "/_matrix/client/v3";
const enc = encodeURIComponent;

/** The client-server API as any user of the application service, the bot included. */
export class MatrixClient {
  readonly #bridge: Bridge;
  readonly #id: string;
  /** Told when the homeserver did not answer, or answered as if it were gone. */
  onUnreachable: () => void = () => {};
  /** Told of a device that the homeserver had deleted, and that was made anew without its keys. */
  onDeviceMade: (device: Required<Sender>) => void = () => {};
  /** Told of every request: the HTTP status, 0 when there was no answer. */
  onAnswered: (status: number) => void = () => {};

  constructor(bridge: Bridge, applicationServiceId: string) {
    this.#bridge = bridge;
    this.#id = applicationServiceId;
  }

  get botUserId(): UserId {
    return this.#bridge.botUserId as UserId;
  }

  /** Address of the homeserver, and the token of the application service. */
  get access(): { readonly url: string; readonly token: string } {
    const { homeserverUrl: url, accessToken: token } = this.#bridge.getBot().getClient();
    return { url, token };
  }

  /** Sends a request; makes the user's device anew if the homeserver has deleted it, as it may do with old ones. */
  async request(
    method: Method,
    path: string,
    { as, body, query = {}, timeoutMs = 60_000 }: RequestParts = {},
  ): Promise<Json> {
    const sender = { user_id: as?.userId, device_id: as?.deviceId };
    const ask = () => this.#ask(method, path, { body, query: withoutUndefined({ ...query, ...sender }), timeoutMs });
    return ask().catch(async (error: unknown) => {
      if (!(error instanceof HomeserverError && error.lacksDevice && as?.deviceId !== undefined)) throw error;
      await this.putDevice(as.userId, as.deviceId);
      this.onDeviceMade({ userId: as.userId, deviceId: as.deviceId });
      return ask();
    });
  }

  async #ask(method: Method, path: string, { body, query, timeoutMs }: RequestParts) {
    try {
      const answer: unknown = await this.#bridge.getBot().getClient().doRequest(method, path, query, body, timeoutMs);
      if (typeof answer !== "object" || answer === null) throw new Error("the answer is no JSON");
      this.onAnswered(200);
      return answer as Json;
    } catch (thrown) {
      const error = new HomeserverError(`${method} ${path}`, thrown);
      this.onAnswered(error.status);
      if (error.isAway) this.onUnreachable();
      throw error;
    }
  }

  async send(as: Sender, roomId: RoomId, { type, content, transactionId }: NewEvent): Promise<EventId> {
    const path = `${v3}/rooms/${enc(roomId)}/send/${enc(type)}/${enc(transactionId)}`;
    return idIn(await this.request("PUT", path, { as, body: content }), "event_id", "$", path) as EventId;
  }

  async sendState(as: Sender, roomId: RoomId, { type, stateKey, content }: NewState): Promise<EventId> {
    const path = `${v3}/rooms/${enc(roomId)}/state/${enc(type)}/${enc(stateKey)}`;
    return idIn(await this.request("PUT", path, { as, body: content }), "event_id", "$", path) as EventId;
  }

  async join(as: Sender, roomId: RoomId): Promise<void> {
    const path = `${v3}/join/${enc(roomId)}`;
    idIn(await this.request("POST", path, { as, body: {} }), "room_id", "!", path);
  }

  async leave(as: Sender, roomId: RoomId, reason: string): Promise<void> {
    await this.request("POST", `${v3}/rooms/${enc(roomId)}/leave`, { as, body: { reason } });
  }

  async invite(as: Sender, roomId: RoomId, userId: UserId): Promise<void> {
    await this.request("POST", `${v3}/rooms/${enc(roomId)}/invite`, { as, body: { user_id: userId } });
  }

  async kick(as: Sender, roomId: RoomId, userId: UserId, reason: string): Promise<void> {
    await this.request("POST", `${v3}/rooms/${enc(roomId)}/kick`, { as, body: { user_id: userId, reason } });
  }

  /** Ends the user for good: it leaves its rooms, and its id cannot be used again. `erases` hides its messages. */
  async deactivate(userId: UserId, erases: boolean): Promise<void> {
    await this.request("POST", `${v3}/account/deactivate`, { as: { userId }, body: { erase: erases } });
  }

  async setTyping(as: Sender, roomId: RoomId, timeoutMs: number): Promise<void> {
    const body = timeoutMs > 0 ? { typing: true, timeout: timeoutMs } : { typing: false };
    await this.request("PUT", `${v3}/rooms/${enc(roomId)}/typing/${enc(as.userId)}`, { as, body });
  }

  /** Says that the user has read the room, threads included, up to an event. */
  async receipt(as: Sender, roomId: RoomId, eventId: EventId): Promise<void> {
    await this.request("POST", `${v3}/rooms/${enc(roomId)}/receipt/m.read/${enc(eventId)}`, { as, body: {} });
  }

  /** All current state events of a room, as the homeserver gives them. */
  async roomState(as: Sender, roomId: RoomId): Promise<unknown[]> {
    const path = `${v3}/rooms/${enc(roomId)}/state`;
    return listIn({ state: await this.request("GET", path, { as }) }, "state", path);
  }

  /** True if the room has state of this type; false also where the user may not know. */
  async hasState(as: Sender, roomId: RoomId, type: string): Promise<boolean> {
    try {
      await this.request("GET", `${v3}/rooms/${enc(roomId)}/state/${enc(type)}/`, { as });
      return true;
    } catch (error) {
      if (error instanceof HomeserverError && (error.status === 404 || error.status === 403) && error.isFinal)
        return false;
      throw error;
    }
  }

  /** Content of the room's `m.room.power_levels`. */
  powerLevels(as: Sender, roomId: RoomId): Promise<Json> {
    return this.request("GET", `${v3}/rooms/${enc(roomId)}/state/m.room.power_levels`, { as });
  }

  /** A page of a room's timeline towards the past, newest first; without `from`, from its end; `types`: only such events. */
  async messagesBefore(
    as: Sender,
    roomId: RoomId,
    { from, limit, types }: PageOfPast,
  ): Promise<{ events: unknown[]; next: string | undefined }> {
    const path = `${v3}/rooms/${enc(roomId)}/messages`;
    const filter = types && JSON.stringify({ types });
    const page = await this.request("GET", path, { as, query: { dir: "b", from, limit, filter } });
    return {
      events: listIn(page, "chunk", path),
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
        uploadMs,
        false,
        contentType,
      )) as Json;
      return idIn(answer, "content_uri", "mxc://", "/upload");
    } catch (thrown) {
      throw new HomeserverError("uploading a file", thrown);
    }
  }

  async createRoom(as: Sender, room: Json): Promise<RoomId> {
    return idIn(
      await this.request("POST", `${v3}/createRoom`, { as, body: room }),
      "room_id",
      "!",
      "/createRoom",
    ) as RoomId;
  }

  /**
   * The bot's room under an alias of our namespace, made if there is none: the alias makes it one room, even if the
   * process dies before it has written down which.
   */
  async ownRoom(aliasName: string, serverName: string, room: Json): Promise<RoomId> {
    const path = `${v3}/directory/room/${enc(`#${aliasName}:${serverName}`)}`;
    const find = async () => idIn(await this.request("GET", path), "room_id", "!", path) as RoomId;
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
    await this.request("PUT", `${v3}/devices/${enc(deviceId)}`, {
      as: { userId },
      body: { display_name: "Clevernet" },
    });
  }

  async setProfile(userId: UserId, displayName: string, avatar: string | null): Promise<void> {
    const intent = this.#bridge.getIntent(userId);
    try {
      await intent.setDisplayName(displayName);
      // An empty address removes the former one.
      await intent.setAvatarUrl(avatar ?? "");
    } catch (thrown) {
      throw new HomeserverError(`profile of ${userId}`, thrown);
    }
  }

  /**
   * Asks the homeserver to ping us with this id, and to push at once all events that it holds back. Returns true if it
   * says that somebody answered.
   */
  async ping(transactionId: string): Promise<boolean> {
    const path = `/_matrix/client/v1/appservice/${enc(this.#id)}/ping`;
    const answer = await this.request("POST", path, { body: { transaction_id: transactionId }, timeoutMs: pingMs });
    return typeof answer.duration_ms === "number";
  }

  async whoami(): Promise<UserId> {
    return (await this.request("GET", `${v3}/account/whoami`)).user_id as UserId;
  }

  /**
   * True if the homeserver answers, even with a refusal: the first real request then shows the mistake.
   */
  async isAlive(): Promise<boolean> {
    try {
      await this.request("GET", "/_matrix/client/versions", { timeoutMs: 5_000 });
      return true;
    } catch (error) {
      return error instanceof HomeserverError && error.errcode !== "" && error.status < 500;
    }
  }

  /** Reads what a user missed since a token, without waiting; see `sweep.ts`. */
  async sync(userId: UserId, since: string | undefined, filter: Json): Promise<Json> {
    const query = { since, filter: JSON.stringify(filter), timeout: 0, set_presence: "offline" };
    return this.request("GET", `${v3}/sync`, { as: { userId }, query });
  }
}

const withoutUndefined = (query: Query): Query =>
  Object.fromEntries(Object.entries(query).filter(([, value]) => value !== undefined));
