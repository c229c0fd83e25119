import { readImage, thumbnail } from "../../adapters/images/image.ts";
import { fileContent } from "../../adapters/matrix/file-content.ts";
import { roomToSpeakIn, threadToSpeakIn } from "../../domain/speech/speaking.ts";
import type { ToolContext, ToolOutcome } from "./tool.ts";

/** Makes the picture of a page a message of the agent's, sent if and only if the operation is done. */
export async function postPicture(
  png: Buffer,
  address: string,
  context: ToolContext,
): Promise<Pick<ToolOutcome, "outbox" | "speaksIn">> {
  const { agent, key, uploads } = context;
  const roomId = await roomToSpeakIn(undefined, context);
  const image = await readImage(png);
  const small = image && (await thumbnail(image));
  const name = `${(URL.parse(address)?.host ?? "page").replace(/[^a-z0-9.-]+/gi, "-")}.png`;
  await uploads.keep(key, [
    { part: "file", name, contentType: "image/png", content: png },
    ...(small ? [{ part: "thumbnail" as const, name, contentType: small.contentType, content: small.bytes }] : []),
  ]);
  const content = fileContent({
    file: { name, contentType: "image/png", bytes: png.length },
    image,
    thumbnail: small,
    caption: undefined,
    thread: threadToSpeakIn(undefined, roomId, context),
    key,
  });
  return { outbox: [{ key, roomId, sender: agent.userId, kind: "media", content }], speaksIn: roomId };
}
