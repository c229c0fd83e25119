import type { MatrixClient, Sender } from "../../adapters/matrix/client.ts";
import { encryptFile, type FileKeys } from "../../adapters/matrix/encrypted-file.ts";
import { fileContent, withUrls } from "../../adapters/matrix/file-content.ts";
import { isShownTurn, shownTurnMark } from "../../adapters/matrix/shown-turn.ts";
import type { OutboxDraft } from "../../domain/tables/outbox.ts";
import type { Uploads } from "../../domain/tables/uploads.ts";

/**
 * Gives the files of a row to the homeserver, each once: its address is kept before anything is sent. Returns the
 * content to send.
 */
export async function uploadFiles(
  client: MatrixClient,
  uploads: Uploads,
  as: Sender,
  { row, isSealed }: { readonly row: OutboxDraft; readonly isSealed: boolean },
): Promise<Record<string, unknown>> {
  const found: { file?: Given; thumbnail?: Given } = {};
  for (const { part, name, contentType, content, url, cipher } of await uploads.of(row.key)) {
    if (url !== null) {
      found[part] = { url, keys: cipher };
      continue;
    }
    const given = await give(client, as, { name, contentType, bytes: bufferOf(content) }, isSealed);
    await uploads.markUploaded(row.key, part, given.url, given.keys);
    found[part] = given;
  }
  if (found.file === undefined) throw new Error(`the file of outbox row ${row.key} is gone`);
  return withUrls(row.content as Record<string, unknown>, { ...found, file: found.file });
}

/** Gives the bytes without a copy: nobody else has them. */
const bufferOf = (content: Uint8Array | null): Buffer =>
  content ? Buffer.from(content.buffer, content.byteOffset, content.byteLength) : Buffer.alloc(0);

interface Given {
  readonly url: string;
  readonly keys: FileKeys | null;
}

interface GivenFile {
  readonly name: string;
  readonly contentType: string;
  readonly bytes: Buffer;
}

/** An encrypted file has neither a name nor a type that the homeserver could read. */
async function give(client: MatrixClient, as: Sender, file: GivenFile, isSealed: boolean): Promise<Given> {
  if (!isSealed) return { url: await client.upload(as, file.bytes, file.contentType, file.name), keys: null };
  const { bytes, keys } = encryptFile(file.bytes);
  return { url: await client.upload(as, bytes, "application/octet-stream", "file"), keys };
}

/** Uploads a long text, which stands in the row itself. */
export async function uploadText(
  client: MatrixClient,
  as: Sender,
  { content, isSealed }: { readonly content: Readonly<Record<string, unknown>>; readonly isSealed: boolean },
): Promise<Record<string, unknown>> {
  const text = Buffer.from(String(content.text));
  const name = String(content.name);
  const contentType = String(content.contentType ?? "text/markdown");
  const given = await give(client, as, { name, contentType, bytes: text }, isSealed);
  const message = fileContent({
    file: { name, contentType, bytes: text.length },
    thread: (content.thread ?? undefined) as never,
    key: String(content["org.clevernet.key"]),
  });
  return withUrls({ ...message, ...(isShownTurn(content) && shownTurnMark) }, { file: given });
}
