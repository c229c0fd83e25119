import { z } from "zod";
import { readImage, thumbnail } from "../../adapters/images/image.ts";
import { fileContent } from "../../adapters/matrix/file-content.ts";
import type { RoomId } from "../../base/lib/ids.ts";
import { nameOf, parsePath } from "../../domain/files/path.ts";
import { includesLevel } from "../../domain/rights/permissions.ts";
import { roomToSpeakIn, sentMessage, threadToSpeakIn } from "../../domain/speech/speaking.ts";
import { defineTool } from "../../engine/operations/tool.ts";

export const tool = defineTool({
  name: "SendFile",
  set: "core",
  command: "send",
  examples: ["plan.png The new plan"],
  topic: "speaking",
  description: "Sends a file into a room.",
  help: "Has the agent send one of its files into a room: an image, audio, a video, or any other file.",
  wording: ({ roomId }) => (roomId === undefined ? "Send {path}" : "Send {path} to {roomId}"),
  kind: "create",
  sendsTo: ({ roomId }, context) => (roomId ?? context.roomId) as RoomId,
  // A yes lends a level, and not the right to read more.
  async check({ path, roomId }, { files, filesIn, level, roomId: here }) {
    const mayBeLent = parsePath(path).share === "agents" && !includesLevel(level, "use");
    if (roomId === undefined || roomId === here || mayBeLent) return;
    await files.sourcesOf(path);
    await filesIn(roomId as RoomId).sourcesOf(path);
  },
  carries: ({ path }) => path,
  isRepeatable: true,
  paths: ["path"],
  positional: ["caption"],
  input: z.object({
    roomId: z
      .string()
      .min(1)
      .meta({
        description: "Default: the conversation's own",
        help: "The room to send it to; without it, this room",
      })
      .optional(),
    path: z.string().min(1).meta({ help: "The file: notes.md in this room, or share:/path" }),
    caption: z
      .string()
      .trim()
      .min(1)
      .meta({
        description: "What is said or seen",
        help: "A text about it; for an image, what can be seen",
      })
      .optional(),
  }),
  async run({ caption, path, roomId: named }, context) {
    const { agent, files, filesIn, key, uploads } = context;
    const roomId = await roomToSpeakIn(named, context);
    const file = await files.read(path);
    // Everybody who hears of it must be allowed to read it, also where they are not here.
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
