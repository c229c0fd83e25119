import { z } from "zod";
import { messageOf, UserError } from "../../base/lib/errors.ts";
import { type EventId, type RoomId, secret, type UserId } from "../../base/lib/ids.ts";
import { splitUserId } from "../../base/lib/matrix-id.ts";

const session = z.object({ access_token: z.string() });
const created = z.object({ room_id: z.string() });
const sent = z.object({ event_id: z.string() });
const members = z.object({ joined: z.record(z.string(), z.unknown()) });
const refusal = z.object({ errcode: z.string(), error: z.string().default("") });

const event = z.object({ event_id: z.string(), type: z.string(), sender: z.string(), content: z.looseObject({}) });
const passing = z.object({ type: z.string(), content: z.looseObject({}) });
const room = z.object({
  timeline: z.object({ events: z.array(event) }),
  ephemeral: z.object({ events: z.array(passing) }).default({ events: [] }),
});
const batch = z.object({
  next_batch: z.string(),
  rooms: z.object({ join: z.record(z.string(), room).default({}) }).default({ join: {} }),
});

/** Events in a room since the last look at it. */
export interface RoomNews {
  /** Token from which the next look goes on. */
  readonly since: string;
  readonly events: readonly z.infer<typeof event>[];
  /** Users who are typing now; undefined: no change. */
  readonly typing: readonly unknown[] | undefined;
}

/** The homeserver does not do what it is asked for. */
class Refusal extends UserError {}

/** A user of the local homeserver, in as little of a Matrix client as a conversation needs. */
export class DemoUser {
  readonly userId: UserId;
  readonly accessToken: string;
  readonly #url: string;

  private constructor(url: string, userId: UserId, accessToken: string) {
    this.#url = url;
    this.userId = userId;
    this.accessToken = accessToken;
  }

  /** Signs in with the token, where it is still good, or else with the password; registers the user who is not there. */
  static async signIn(
    url: string,
    userId: UserId,
    { password, accessToken = "" }: { readonly password: string; readonly accessToken?: string | undefined },
  ): Promise<DemoUser> {
    const known = new DemoUser(url, userId, accessToken);
    if (accessToken !== "" && (await known.#unlessRefused("GET", "account/whoami"))) return known;
    const stranger = new DemoUser(url, userId, "");
    const device = { device_id: "DEMO", initial_device_display_name: "npm run demo" };
    const { localpart } = splitUserId(userId);
    const answer =
      (await stranger.#unlessRefused("POST", "login", {
        type: "m.login.password",
        identifier: { type: "m.id.user", user: localpart },
        password,
        ...device,
      })) ??
      (await stranger.#ask("POST", "register", {
        username: localpart,
        password,
        auth: { type: "m.login.dummy" },
        ...device,
      }));
    return new DemoUser(url, userId, session.parse(answer).access_token);
  }

  /** Makes a direct room, to which `other` is invited. */
  async createDirectRoom(other: UserId): Promise<RoomId> {
    const direct = { is_direct: true, preset: "trusted_private_chat", invite: [other] };
    const { room_id: roomId } = created.parse(await this.#ask("POST", "createRoom", direct));
    await this.#ask("PUT", `user/${encodeURIComponent(this.userId)}/account_data/m.direct`, { [other]: [roomId] });
    return roomId as RoomId;
  }

  /** Everybody in a room; nobody where this user is not in it. */
  async membersOf(roomId: RoomId): Promise<string[]> {
    const answer = await this.#unlessRefused("GET", `rooms/${encodeURIComponent(roomId)}/joined_members`);
    return Object.keys(answer ? members.parse(answer).joined : {});
  }

  async say(roomId: RoomId, body: string): Promise<EventId> {
    const path = `rooms/${encodeURIComponent(roomId)}/send/m.room.message/${secret(8)}`;
    return sent.parse(await this.#ask("PUT", path, { msgtype: "m.text", body })).event_id as EventId;
  }

  /** Reads new events in a room. Waits for `waitMs` where there are none; without `since`, only finds the present. */
  async news(roomId: RoomId, since: string | undefined, waitMs: number): Promise<RoomNews> {
    const nothing = { types: [] };
    const filter = {
      presence: nothing,
      account_data: nothing,
      room: {
        rooms: [roomId],
        state: nothing,
        account_data: nothing,
        timeline: { limit: since === undefined ? 1 : 100 },
        ephemeral: { types: ["m.typing"] },
      },
    };
    const query = new URLSearchParams({ filter: JSON.stringify(filter), timeout: String(waitMs) });
    if (since !== undefined) query.set("since", since);
    const { next_batch, rooms } = batch.parse(await this.#ask("GET", `sync?${query}`, undefined, waitMs));
    const here = rooms.join[roomId];
    const typing = here?.ephemeral.events.findLast(({ type }) => type === "m.typing")?.content.user_ids;
    return {
      since: next_batch,
      events: here?.timeline.events ?? [],
      typing: Array.isArray(typing) ? typing : undefined,
    };
  }

  async #ask(method: string, path: string, body?: object, waitMs = 0): Promise<unknown> {
    const response = await fetch(`${this.#url}/_matrix/client/v3/${path}`, {
      method,
      headers: this.accessToken === "" ? {} : { authorization: `Bearer ${this.accessToken}` },
      body: body ? JSON.stringify(body) : null,
      signal: AbortSignal.timeout(waitMs + 20_000),
    }).catch((error: unknown) => {
      throw new UserError(`The homeserver does not answer at ${this.#url}: ${messageOf(error)}.`);
    });
    const answer: unknown = await response.json();
    if (response.ok) return answer;
    const { errcode, error } = refusal.parse(answer);
    throw new Refusal(`The homeserver refuses ${path.replace(/\?.*/, "")}: ${errcode}, ${error}`);
  }

  #unlessRefused(method: string, path: string, body?: object): Promise<unknown> {
    return this.#ask(method, path, body).catch((error: unknown) => {
      if (error instanceof Refusal) return undefined;
      throw error;
    });
  }
}
