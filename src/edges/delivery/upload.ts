import type { MatrixClient, Sender } from "../../adapters/matrix/client.ts";
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
  row: OutboxDraft,
): Promise<Record<string, unknown>> {
  const urls: { file?: string; thumbnail?: string } = {};
  for (const { part, name, contentType, content, url } of await uploads.of(row.key)) {
    urls[part] = url ?? (await client.upload(as, Buffer.from(content ?? []), contentType, name));
    if (url === null) await uploads.uploaded(row.key, part, urls[part]);
  }
  if (urls.file === undefined) throw new Error(`the file of outbox row ${row.key} is gone`);
  return withUrls(row.content as Record<string, unknown>, { ...urls, file: urls.file });
}

/** Uploads a long text, which stands in the row itself. */
export async function uploadText(
  client: MatrixClient,
  as: Sender,
  content: Readonly<Record<string, unknown>>,
): Promise<Record<string, unknown>> {
  const text = Buffer.from(String(content.text));
  const name = String(content.name);
  const contentType = "text/markdown";
  const url = await client.upload(as, text, contentType, name);
  const message = fileContent({
    file: { name, contentType, bytes: text.length },
    thread: (content.thread ?? undefined) as never,
    key: String(content["org.clevernet.key"]),
  });
  return withUrls({ ...message, ...(isShownTurn(content) && shownTurnMark) }, { file: url });
}
