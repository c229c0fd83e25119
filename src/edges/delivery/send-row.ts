import { HomeserverError, type MatrixClient, type Sender } from "../../adapters/matrix/client.ts";
import { withdraw } from "../../adapters/matrix/draft.ts";
import { relatedEvent } from "../../adapters/matrix/relation.ts";
import type { EventId, UserId } from "../../base/lib/ids.ts";
import type { OutboxDraft } from "../../domain/tables/outbox.ts";
import type { Uploads } from "../../domain/tables/uploads.ts";
import { uploadFiles, uploadText } from "./upload.ts";

export interface SendingParts {
  readonly client: MatrixClient;
  readonly uploads: Uploads;
  /** The device under which a user sends. */
  readonly deviceOf: (userId: UserId) => Promise<string | undefined>;
}

/**
 * Has the homeserver do what a row of the outbox says. Returns the event that it became; undefined where it became none.
 * @throws HomeserverError where the homeserver refuses, or does not answer
 */
export async function sendRow(
  row: OutboxDraft,
  { client, deviceOf, uploads }: SendingParts,
): Promise<EventId | undefined> {
  const deviceId = await deviceOf(row.sender);
  const as: Sender = { userId: row.sender, ...(deviceId !== undefined && { deviceId }) };
  const content = row.content as Record<string, unknown>;
  const say = (body: Record<string, unknown>) => client.send(as, row.roomId, "m.room.message", row.key, body);
  switch (row.kind) {
    case "join":
      await client.join(as, row.roomId);
      return undefined;
    case "leave":
      await client.leave(as, row.roomId, String(content.reason ?? ""));
      return undefined;
    case "profile":
      await client.setProfile(
        row.sender,
        String(content.displayName),
        typeof content.avatar === "string" ? content.avatar : null,
      );
      return undefined;
    case "file":
      return say(await uploadText(client, as, content));
    case "media":
      return say(await uploadFiles(client, uploads, as, row));
    case "reaction":
      return react(client, as, row, content);
    case "withdrawal":
      await withdraw(client, as, row.roomId, relatedEvent(content), row.key, reasonOf(content));
      return undefined;
    case "message":
    case "draft":
      return say(content);
  }
}

/** Why a row withdraws something; undefined for a draft. */
const reasonOf = ({ reason }: Record<string, unknown>) => (typeof reason === "string" ? reason : undefined);

/** The homeserver refuses an equal reaction a second time: it is there. */
const react = (client: MatrixClient, as: Sender, row: OutboxDraft, content: Record<string, unknown>) =>
  client.send(as, row.roomId, "m.reaction", row.key, content).catch((error: unknown) => {
    if (error instanceof HomeserverError && error.errcode === "M_DUPLICATE_ANNOTATION") return undefined;
    throw error;
  });
