import { HomeserverError, type MatrixClient, type Sender } from "../../adapters/matrix/client.ts";
import { withdraw } from "../../adapters/matrix/draft.ts";
import { relatedEvent } from "../../adapters/matrix/relation.ts";
import type { EventId, UserId } from "../../base/lib/ids.ts";
import type { OutboxDraft, OutboxRow } from "../../domain/tables/outbox.ts";
import type { Uploads } from "../../domain/tables/uploads.ts";
import type { Sealing } from "./sealing.ts";
import { uploadFiles, uploadText } from "./upload.ts";

export interface SendingParts {
  readonly client: MatrixClient;
  readonly uploads: Uploads;
  /** The device under which a user sends. */
  readonly deviceOf: (userId: UserId) => Promise<string | undefined>;
  readonly sealing: Pick<Sealing, "prepare" | "wireOf">;
}

/** A row as it is sent. */
interface RowToSend extends OutboxDraft {
  readonly wire?: OutboxRow["wire"];
  /** True if it is sent encrypted. */
  readonly isSealed: boolean;
}

/**
 * Has the homeserver do what a row of the outbox says. Returns the event that it became; undefined where it became none.
 * @throws HomeserverError where the homeserver refuses, or does not answer
 */
export async function sendRow(
  row: RowToSend,
  { client, deviceOf, sealing, uploads }: SendingParts,
): Promise<EventId | undefined> {
  const deviceId = await deviceOf(row.sender);
  const as: Sender = { userId: row.sender, ...(deviceId !== undefined && { deviceId }) };
  const content = row.content as Record<string, unknown>;
  const { isSealed, wire } = row;
  const transactionId = row.key;
  if (wire) return client.send(as, row.roomId, { type: "m.room.encrypted", content: wire, transactionId });
  const say = async (body: Record<string, unknown>) => {
    if (!isSealed) return client.send(as, row.roomId, { type: "m.room.message", content: body, transactionId });
    const encrypted = await sealing.wireOf(row, body);
    return client.send(as, row.roomId, { ...encrypted, transactionId });
  };
  switch (row.kind) {
    case "join":
      await sealing.prepare(row.sender);
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
      return say(await uploadText(client, as, { content, isSealed }));
    case "media":
      return say(await uploadFiles(client, uploads, as, { row, isSealed }));
    case "reaction":
      return react(client, as, row, content);
    case "withdrawal":
      await withdraw(
        client,
        as,
        { roomId: row.roomId, eventId: relatedEvent(content) },
        { key: row.key, reason: reasonOf(content) },
      );
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
  client.send(as, row.roomId, { type: "m.reaction", content, transactionId: row.key }).catch((error: unknown) => {
    if (error instanceof HomeserverError && error.errcode === "M_DUPLICATE_ANNOTATION") return undefined;
    throw error;
  });
