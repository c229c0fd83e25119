import { EventType, MatrixEvent } from "matrix-js-sdk";
import { type Credentials, callMatrix, register } from "./matrix-api.ts";
import { eventually } from "./poll.ts";
import { TestUser } from "./user.ts";

const encryption = { algorithm: "m.megolm.v1.aes-sha2" };

/** State with which a room is encrypted from its beginning. */
const encrypted = { initial_state: [{ type: "m.room.encryption", state_key: "", content: encryption }] };

/** Registers a new account and starts a client for it that encrypts. */
export async function createSecretUser(homeserver: { readonly url: string }, name: string): Promise<SecretUser> {
  return startSecretUser(homeserver, await register(homeserver.url, name));
}

/** A further device of the user, which begins without any key. */
export async function addDevice(homeserver: { readonly url: string }, user: SecretUser, password: string) {
  const identifier = { type: "m.id.user", user: user.id };
  const body = { type: "m.login.password", identifier, password };
  const { access_token, device_id } = await callMatrix(homeserver.url, "", "POST", "v3/login", { body });
  const credentials = { userId: user.id, accessToken: String(access_token), deviceId: String(device_id) };
  return startSecretUser(homeserver, credentials as Credentials);
}

async function startSecretUser(homeserver: { readonly url: string }, credentials: Credentials): Promise<SecretUser> {
  const keys = new KeyPost();
  const user = new SecretUser(homeserver.url, credentials, keys);
  await user.client.initRustCrypto({ useIndexedDB: false });
  await user.start();
  return user;
}

/** Carries the client's requests, and may keep those back that give somebody a key. */
class KeyPost {
  #kept: (() => void)[] | undefined;

  readonly fetch: typeof fetch = async (input, init) => {
    if (!this.#kept || !String(input).includes("/sendToDevice/m.room.encrypted/")) return fetch(input, init);
    this.#kept.push(() => void fetch(input, { ...init, signal: null }));
    return Response.json({});
  };

  /** From now on keys go nowhere, and the client does not know. */
  keep(): void {
    this.#kept = [];
  }

  /** Lets all that was kept go on, and whatever comes later. */
  release(): void {
    for (const go of this.#kept ?? []) go();
    this.#kept = undefined;
  }

  /** Throws away all that was kept. */
  lose(): void {
    this.#kept = undefined;
  }
}

/** A person whose client encrypts: rooms that they make are encrypted, and so is what they say there. */
export class SecretUser extends TestUser {
  readonly keys: KeyPost;

  constructor(url: string, credentials: Credentials, keys: KeyPost) {
    super(url, credentials, keys.fetch);
    this.keys = keys;
  }

  override async createRoom(options: Readonly<Record<string, unknown>> = {}): Promise<string> {
    const room = await super.createRoom({ ...encrypted, ...options });
    // A client that has not heard of it yet writes plain text.
    const isKnown = () => "initial_state" in options || this.client.getRoom(room)?.hasEncryptionStateEvent();
    await eventually(isKnown, { what: `${this.id} to know that the room is encrypted` });
    return room;
  }

  /** As clients send it: reactions stay plain. */
  override async send(roomId: string, type: string, content: Readonly<Record<string, unknown>>): Promise<string> {
    if (type !== EventType.RoomMessage) return super.send(roomId, type, content);
    return (await this.client.sendEvent(roomId, EventType.RoomMessage, content as never)).event_id;
  }

  /** Makes the next message begin a new session. */
  async forgetSession(roomId: string): Promise<void> {
    await this.client.getCrypto()?.forceDiscardSession(roomId);
  }

  /** The colour of the shield that the client shows beside an event, and why. */
  async shieldOf(roomId: string, eventId: string): Promise<string> {
    const raw = await this.event(roomId, eventId);
    const event = new MatrixEvent(raw as never);
    await this.client.decryptEventIfNeeded(event);
    const info = await this.client.getCrypto()?.getEncryptionInfoForEvent(event);
    return `${info?.shieldColour} ${info?.shieldReason}`;
  }
}
