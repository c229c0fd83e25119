import { z } from "zod";
import type { RoomId } from "../../base/lib/ids.ts";
import { findRelated } from "../../domain/speech/related.ts";
import { roomToSpeakIn, sentMessage, threadToSpeakIn } from "../../domain/speech/speaking.ts";
import { utter } from "../../domain/speech/utter.ts";
import { eventName } from "../../engine/operations/event-name.ts";
import { defineTool } from "../../engine/operations/tool.ts";

export const tool = defineTool({
  name: "SendMessage",
  set: "core",
  command: "say",
  examples: ["Good morning", "--replyTo 17 I am on it."],
  topic: "speaking",
  description: "Says something in a room, in Markdown. This is how people and other agents hear you.",
  help: "Has the agent say something in a room, in Markdown.",
  wording: ({ roomId }) => (roomId === undefined ? "Say {content}" : "Say {content} in {roomId}"),
  kind: "create",
  sendsTo: ({ roomId }, context) => (roomId ?? context.roomId) as RoomId,
  isLogged: false,
  isRepeatable: true,
  isImmediate: true,
  input: z.object({
    roomId: z
      .string()
      .min(1)
      .meta({
        description: "Default: the conversation's own",
        help: "The room to speak in, such as !abc:example.org; without it, this room",
      })
      .optional(),
    threadId: eventName.optional().meta({
      description: "id of the thread's first message; default: where this is asked",
      help: "The message at the start of the thread, by its number or its id; without it, the thread of the command",
    }),
    replyTo: eventName.optional().meta({
      description: "id of the message that this answers",
      help: "The message that this answers, by its number or its id",
    }),
    final: z.boolean().describe("true: nothing is left to do, the turn ends").optional(),
    content: z.string().trim().min(1).meta({ help: "What to say" }),
  }),
  async run({ content, final, replyTo, roomId: named, threadId }, context) {
    const { agent, events, key, rooms } = context;
    const roomId = await roomToSpeakIn(named, context);
    const root = threadId === undefined ? undefined : (await findRelated(roomId, threadId, events)).root;
    const answered = replyTo === undefined ? undefined : (await findRelated(roomId, replyTo, events)).eventId;
    const thread = threadToSpeakIn(root, roomId, context);
    const members = content.includes("@") ? await rooms.membersOf(roomId) : [];
    const outbox = utter({
      sender: agent.userId,
      roomId,
      text: content,
      thread,
      replyTo: answered,
      members,
      key,
    });
    const result = sentMessage(context, roomId, { messageType: "m.text", threadId: thread?.root, replyTo }, content);
    return { result, outbox, speaksIn: roomId, endsTurn: final ?? false };
  },
});
