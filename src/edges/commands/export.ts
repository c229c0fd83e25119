import { z } from "zod";
import { threadPlaceOf } from "../../adapters/matrix/relation.ts";
import { UserError } from "../../base/lib/errors.ts";
import { digest } from "../../base/lib/ids.ts";
import { fileDraft } from "../../domain/speech/utter.ts";
import { defineCommand } from "../../engine/control/define-command.ts";
import { keeperOf } from "../../engine/control/memory-owner.ts";

export const commands = [
  defineCommand({
    command: "export",
    examples: ["helper", "helper --before 2026-03-01T12:00:00Z"],
    topic: "memory",
    description:
      "Sends an agent's memory as a file of JSON lines: what everybody in this room may read of it, with its working files. The agent's owner and admins may. `!import` takes it back, here or elsewhere, once you have saved it and sent it yourself.",
    where: "anywhere",
    level: "chat",
    input: z.object({
      agent: z.string().trim().min(1).optional().describe("The agent's name; may be left out where one agent is here"),
      before: z
        .string()
        .optional()
        .describe("Only what is older, without working files: for the rest of a large memory"),
    }),
    positional: ["agent"],
    isNamedLast: true,
    async run({ agent: name, before }, context) {
      const { audit, client, clock, event, message, prefix, room, transfer } = context;
      const agent = await keeperOf(name, context);
      const { roomId, sender: by } = event;
      const made = await transfer.exportFrom(agent, roomId, clock.now(), before);
      if (made.memories + made.files === 0)
        throw new UserError(
          `There is nothing of the memory of ${agent.name} that everybody here may read.${keptBackText(made.keptBack)}`,
        );
      const subject = `agent ${agent.name}: memory exported`;
      const after = `${made.memories} memories and ${made.files} working files into ${roomId}`;
      await audit.record({ key: event.eventId, actor: by, subject, before: null, after });
      const isHere = context.agents.some(({ userId }) => userId === agent.userId);
      const file = fileDraft({
        sender: isHere && !room.hasBotJoined ? agent.userId : client.botUserId,
        roomId,
        name: `memory-of-${agent.name}.jsonl`,
        contentType: "application/jsonl",
        text: made.text,
        thread: threadPlaceOf(message.threadId, event.eventId),
        key: digest("export", event.eventId),
        shows: made.eventIds,
      });
      const rest =
        made.older === undefined
          ? ""
          : ` There is more, which is older: \`${prefix}export ${agent.name} --before ${made.older}\``;
      const files = made.files === 0 ? "" : ` and ${made.files} working files`;
      const text = `The memory of ${agent.name}: ${made.memories} memories${files}.${keptBackText(made.keptBack)} The file is taken back if a message in it is redacted.${rest}`;
      return { text, outbox: [file] };
    },
  }),
];

const keptBackText = (count: number): string =>
  count === 0 ? "" : ` ${count} more are not in it, as not everybody here may read them.`;
