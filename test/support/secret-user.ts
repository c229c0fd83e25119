import { EventType, MatrixEvent } from "matrix-js-sdk";
import { type Credentials, register } from "./matrix-api.ts";
import { TestUser } from "./user.ts";

const encryption = { algorithm: "m.megolm.v1.aes-sha2" };

/** State with which a room is encrypted from its beginning. */
const encrypted = { initial_state: [{ type: "m.room.encryption", state_key: "", content: encryption }] };

/** Registers a new account and starts a client for it that encrypts. */
export async function createSecretUser(homeserver: { readonly url: string }, name: string): Promise<SecretUser> {
  return startSecretUser(homeserver, await register(homeserver.url, name));
}

async function startSecretUser(homeserver: { readonly url: string }, credentials: Credentials): Promise<SecretUser> {
  const user = new SecretUser(homeserver.url, credentials);
  await user.client.initRustCrypto({ useIndexedDB: false });
  await user.start();
  return user;
}

/** A person whose client encrypts: rooms that they make are encrypted, and so is what they say there. */
export class SecretUser extends TestUser {
  override createRoom(options: Readonly<Record<string, unknown>> = {}): Promise<string> {
    return super.createRoom({ ...encrypted, ...options });
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
