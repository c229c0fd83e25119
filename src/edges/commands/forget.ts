import { z } from "zod";
import { UserError } from "../../base/lib/errors.ts";
import type { UserId } from "../../base/lib/ids.ts";
import { isUserId } from "../../base/lib/matrix-id.ts";
import { blank, hasAnyWord } from "../../base/lib/repeats.ts";
import type { Forgotten } from "../../domain/memory/forget.ts";
import { includesLevel } from "../../domain/rights/permissions.ts";
import { type CommandContext, defineCommand } from "../../engine/control/define-command.ts";
import { quote } from "../../engine/operations/shown-text.ts";

/** Answer where the words of the command are gone already: its process died before it was answered. */
const forgottenBefore = "It is forgotten.";

export const commands = [
  defineCommand({
    command: "forget",
    examples: ["door code", "all", "all @bob:example.org"],
    topic: "memory",
    description:
      "Makes the agents here forget: as a reply, that message; WORDS, what has all of these words, each as it is written, also knowledge and files; `all`, everything that you have said here, commands too. What others have said takes the right to operate. In the room the messages stay.",
    where: "room",
    level: "chat",
    input: z.object({
      what: z
        .string()
        .trim()
        .max(500)
        .optional()
        .describe("Words, or `all`, or `all` and a user id; nothing in a reply"),
    }),
    positional: ["what"],
    async run({ what }, context) {
      const { event, forgetting, message } = context;
      if (message.replyTo !== undefined && !what) return forgetReplied(context, message.replyTo);
      if (!what) throw new UserError("Reply with it to the message that is to be forgotten, or name words, or `all`.");
      const [, named] = /^all(?:\s+(\S+))?$/.exec(what) ?? [];
      const isAll = /^all(?:\s|$)/.test(what);
      if (named !== undefined && !isUserId(named))
        throw new UserError(`${named} is no user id, such as @bob:example.org.`);
      if (named !== undefined && named !== event.sender) requireOperate(context);
      if (what === blank) return forgottenBefore;
      if (!isAll && !hasAnyWord(what)) throw new UserError(`"${what}" names no word.`);
      const ofOthers = !isAll && includesLevel(context.level, "operate");
      const by: UserId | undefined = ofOthers ? undefined : ((named as UserId | undefined) ?? event.sender);
      const forgotten = await forgetting.all({
        roomId: event.roomId,
        agents: context.agents.map(({ name }) => name),
        words: isAll ? undefined : what,
        by,
        except: event.eventId,
      });
      if (!isAll) await forgetting.command(event.eventId, `${context.prefix}forget ${blank}`);
      return tellForgotten(forgotten, context.prefix);
    },
  }),
];

/** Files of people that are named. */
const filesNamed = 10;

/** Says what was reached, and what was not. */
function tellForgotten({ left, ...counts }: Forgotten, prefix: string): string {
  const units = [
    ["messages", "message", "messages"],
    ["memories", "memory", "memories"],
    ["knowledge", "entry of knowledge", "entries of knowledge"],
    ["files", "file of the agents", "files of the agents"],
  ] as const;
  const reached = units.flatMap(([kind, one, many]) =>
    counts[kind] === 0 ? [] : [`${counts[kind]} ${counts[kind] === 1 ? one : many}`],
  );
  const told =
    reached.length === 0 ? "Nothing of it is remembered here." : `Forgotten of this room: ${reached.join(", ")}.`;
  if (left.length === 0) return told;
  const more = left.length > filesNamed ? `\n- and ${left.length - filesNamed} more` : "";
  const names = left.slice(0, filesNamed).map((path) => `- ${quote(path)}`);
  return `${told} It still stands in files that people have written, where agents can read it. Change them, or remove them with \`${prefix}rm\`:\n${names.join("\n")}${more}`;
}

async function forgetReplied(context: CommandContext, eventId: NonNullable<CommandContext["message"]["replyTo"]>) {
  const { event, events, forgetting } = context;
  const target = await events.find(eventId);
  if (target?.roomId !== event.roomId) throw new UserError("The message that you have replied to is not known here.");
  if (target.sender !== event.sender) requireOperate(context);
  await forgetting.message(eventId);
  return "The message is forgotten, with what was made of it.";
}

function requireOperate({ level }: CommandContext): void {
  if (!includesLevel(level, "operate"))
    throw new UserError("To make the agents forget what others have said, you need the right to operate.");
}
