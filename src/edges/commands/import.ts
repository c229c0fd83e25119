import { z } from "zod";
import { UserError } from "../../base/lib/errors.ts";
import { digest, type EventId } from "../../base/lib/ids.ts";
import type { Agent } from "../../domain/agents/agent.ts";
import type { StoredEvent } from "../../domain/tables/events.ts";
import { type CommandContext, defineCommand } from "../../engine/control/define-command.ts";
import { keeperOf } from "../../engine/control/memory-owner.ts";
import { completePaths } from "../../engine/operations/operation.ts";
import { filesFor } from "../../engine/operations/tool-context.ts";

/** Longest wait for a file that was sent just now. */
const waitMs = 30_000;
const lookEveryMs = 500;

export const commands = [
  defineCommand({
    command: "import",
    examples: ["helper", "helper --path memory-of-helper.jsonl"],
    topic: "memory",
    description:
      "Takes an export of memory into the memory of an agent: as a reply to the message with the file, or with the path of one. What comes from elsewhere is recalled for the agent's owner alone, and nothing is there twice. The agent's owner and admins may.",
    where: "anywhere",
    level: "chat",
    input: z.object({
      agent: z.string().trim().min(1).optional().describe("The agent's name; may be left out where one agent is here"),
      path: z.string().trim().min(1).optional().describe("A file that agents have; without it, the file replied to"),
    }),
    positional: ["agent"],
    isNamedLast: true,
    async run({ agent: name, path }, context) {
      const { audit, clock, event, files, message, prefix, transfer } = context;
      const agent = await keeperOf(name, context);
      if (path === undefined && message.replyTo === undefined)
        throw new UserError(
          `Send the file here, and reply to it with \`${prefix}import ${agent.name}\`; or name one with --path.`,
        );
      const text =
        path === undefined
          ? await sentText(message.replyTo as EventId, agent, context)
          : await fileText(path, agent, context);
      const key = digest("import", event.eventId);
      const { limits } = files;
      const done = await transfer.importInto(agent, { text, by: event.sender, key, now: clock.now(), limits });
      const subject = `agent ${agent.name}: memory imported`;
      const after = `${done.taken} memories and ${done.paths.length} working files of ${done.from}`;
      await audit.record({ key: event.eventId, actor: event.sender, subject, before: null, after });
      return [
        `Imported into the memory of ${agent.name}: ${done.taken} memories.`,
        ...(done.known > 0 ? [`- ${done.known} were there already.`] : []),
        ...(done.gone > 0 ? [`- ${done.gone} stay out: they were taken back or forgotten here.`] : []),
        ...(done.paths.length > 0
          ? [
              `- Working files are kept as they were, beside the agent's own: ${done.paths.map((one) => `\`${one}\``).join(", ")}`,
            ]
          : []),
        `- What was imported is recalled only where ${agent.owner} is alone with ${agent.name}, whatever the file says, and counts as untrusted. To have something of it recalled everywhere: \`${prefix}remember TEXT --shareable\`.`,
      ].join("\n");
    },
  }),
];

/** Reads the file that a message in the room carries. */
async function sentText(eventId: EventId, agent: Agent, context: CommandContext): Promise<string> {
  const { clock, event, events, files, history } = context;
  const { roomId, sender } = event;
  const until = clock.monotonic() + waitMs;
  let target: StoredEvent | undefined;
  for (;;) {
    target = await events.find(eventId);
    if (target?.roomId !== roomId || !(await history.mayReadAll([sender], [roomId], agent.owner, target.position)))
      throw new UserError("The message that you have replied to is not known here.");
    if (target.media?.state !== "pending" || clock.monotonic() > until) break;
    await clock.sleep(lookEveryMs);
  }
  const { media } = target;
  if (!media) throw new UserError("The message that you have replied to carries no file.");
  if (media.state !== "kept")
    throw new UserError(
      `The file cannot be read: ${media.state === "missing" ? media.reason : "it has not come yet"}.`,
    );
  const [share = "", path = ""] = media.path.split(/:(.*)/s);
  const [row] = (await files.stores.rooms?.read([{ share, path }])) ?? [];
  if (!row) throw new UserError("The file is gone.");
  return textOf(row);
}

async function fileText(path: string, agent: Agent, { event, files, level }: CommandContext): Promise<string> {
  const { eventId, roomId, sender } = event;
  const key = digest("import", eventId);
  const origin = { agent, roomId, by: "person" as const, requesters: [sender], sources: [roomId], taint: [], key };
  const { path: whole } = completePaths({ paths: ["path"] }, { path }, { agent: agent.name, roomId });
  return textOf(await filesFor(files, origin, level).read(whole));
}

const textOf = ({ text }: { readonly text: string | null }): string => {
  if (text === null) throw new UserError("The file is no text: an export of memory has a line of JSON for each entry.");
  return text;
};
