import { z } from "zod";
import { roomToSpeakIn, sentMessage, threadToSpeakIn } from "../agent/room.ts";
import { defineTool } from "../agent/tool.ts";
import type { RoomId } from "../lib/ids.ts";
import { fileContent } from "../matrix/file-content.ts";
import { readImage, thumbnail } from "../media/image.ts";
import { nameOf } from "../vfs/path.ts";

export const tool = defineTool({
  name: "SendFile",
  set: "core",
  command: "send",
  examples: ["rooms:/!abc:example.org/plan.png The new plan"],
  description:
    "Sends a file of the virtual file system into a room, where people see or hear it: an image, audio, a video, or any other file.",
  kind: "create",
  sendsTo: ({ roomId }, context) => (roomId ?? context.roomId) as RoomId,
  repeatable: true,
  positional: ["caption"],
  input: z.object({
    roomId: z.string().min(1).describe("The room to send it to; without it, the one you are in").optional(),
    path: z.string().min(1).describe("The file, as share:/path"),
    caption: z.string().trim().min(1).describe("What to say about it; for an image, what is to be seen").optional(),
  }),
  async run({ caption, path, roomId: named }, context) {
    const { agent, files, filesIn, key, uploads } = context;
    const roomId = await roomToSpeakIn(named, context);
    const file = await files.read(path);
    // Whoever hears of it must be allowed to read it, also where that is not who is here.
    if (roomId !== context.roomId) await filesIn(roomId).stat(path);
    const bytes = file.text === null ? Buffer.from(file.binary ?? []) : Buffer.from(file.text);
    const image = file.contentType.startsWith("image/") ? await readImage(bytes) : undefined;
    const small = image && (await thumbnail(image));
    const name = nameOf(file);
    await uploads.keep(key, [
      { part: "file", name, contentType: file.contentType, content: bytes },
      ...(small ? [{ part: "thumbnail" as const, name, contentType: small.contentType, content: small.bytes }] : []),
    ]);
    const content = fileContent({
      file: { name, contentType: file.contentType, bytes: bytes.length },
      image,
      thumbnail: small,
      caption,
      thread: threadToSpeakIn(undefined, roomId, context),
      key,
    });
    const result = sentMessage(
      context,
      roomId,
      { messageType: String(content.msgtype), path: `${file.share}:${file.path}` },
      caption ?? name,
    );
    return { result, outbox: [{ key, roomId, sender: agent.userId, kind: "media", content }], speaksIn: roomId };
  },
});
