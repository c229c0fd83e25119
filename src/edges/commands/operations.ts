import { z } from "zod";
import { fence, inlineCode } from "../../adapters/matrix/markdown.ts";
import { UserError } from "../../base/lib/errors.ts";
import { HOME } from "../../base/lib/ids.ts";
import { visible } from "../../base/lmml/visible.ts";
import { includesLevel } from "../../domain/rights/permissions.ts";
import type { Operation } from "../../domain/tables/operations.ts";
import { type CommandContext, defineCommand } from "../../engine/control/define-command.ts";
import { namesOf } from "../../engine/operations/asking.ts";
import { operationNumber } from "../../engine/operations/operation-number.ts";
import { wordingOf } from "../../engine/operations/wording.ts";

export const commands = [
  defineCommand({
    command: "operations",
    topic: "approvals",
    description:
      "Lists what the agent has done and asked for here, the newest last; in the control room, of all agents.",
    where: "anywhere",
    level: "use",
    input: z.object({
      number: z.int().min(1).max(50).optional().describe("How many operations; without it 10"),
    }),
    positional: ["number"],
    async run({ number = 10 }, context) {
      const { agents, event, operations } = context;
      const found = seesAll(context)
        ? await operations.newest(undefined, number)
        : await Promise.all(agents.map(({ name }) => operations.newest({ agent: name, roomId: event.roomId }, number)));
      const newest = found
        .flat()
        .sort((a, b) => a.id - b.id)
        .slice(-number);
      const open = await readable(newest, context);
      const hasSeveral = seesAll(context) || agents.length > 1;
      const names = seesAll(context)
        ? await namesOf(
            newest.map(({ roomId }) => roomId),
            context.rooms,
          )
        : new Map();
      const where = ({ roomId }: Operation): string =>
        !seesAll(context) ? "" : roomId === HOME ? " at home" : ` in ${onOneLine(names.get(roomId) ?? roomId)}`;
      const listing = { hasSeveral, where, toolbox: context.toolbox };
      const lines = newest.map((operation) => lineOf(operation, open.has(operation.id), listing));
      return lines.join("\n") || "There is no operation yet.";
    },
  }),
  defineCommand({
    command: "operation",
    examples: ["17"],
    topic: "approvals",
    description: "Shows everything about one operation, if you may read all that its caller was shown.",
    where: "anywhere",
    level: "use",
    input: z.object({
      number: operationNumber,
    }),
    /** Only where everybody in the room may read it. */
    async run({ number }, context) {
      const operation = await context.operations.find(number);
      const isHere = operation && (seesAll(context) || context.agents.some(({ name }) => name === operation.agent));
      if (!operation || !isHere || !(await readable([operation], context)).has(operation.id)) {
        throw new UserError(`There is no operation ${number} here, or not everybody in this room may read it.`);
      }
      return detailsOf(operation);
    },
  }),
];

interface Listing {
  /** Of more agents than one. */
  readonly hasSeveral: boolean;
  readonly toolbox: CommandContext["toolbox"];
  readonly where: (operation: Operation) => string;
}

const seesAll = ({ level, room }: CommandContext): boolean => room.kind === "control" && includesLevel(level, "admin");

/** Ids of those which everybody in the room may read; a card that stands here shows its operation already. */
async function readable(operations: readonly Operation[], context: CommandContext): Promise<ReadonlySet<number>> {
  const { directory, event, history } = context;
  const answers = new Map<string, Promise<boolean>>();
  const ask = async ({ agent: name, place, roomId, sources }: Operation): Promise<boolean> => {
    const agent = await directory.findRecent(name);
    if (agent === undefined) return false;
    const audience = await history.audience(event.roomId, agent.owner);
    return history.mayReadAll(audience, [...new Set([...sources, roomId])], agent.owner, place);
  };
  const found = operations.map(async (operation) => {
    const key = JSON.stringify([operation.agent, operation.roomId, operation.sources, operation.place]);
    const answer = answers.get(key) ?? ask(operation);
    answers.set(key, answer);
    return (await answer) ? [operation.id] : [];
  });
  return new Set((await Promise.all(found)).flat());
}

const marks: Readonly<Record<Operation["state"], string>> = {
  asked: "⏳",
  running: "▶️",
  done: "✅",
  failed: "❌",
  refused: "🚫",
  interrupted: "🛑",
  expired: "⌛",
  unknown: "❓",
};

const stateOf = ({ decision, state }: Operation): string =>
  `${marks[state]} ${state === "asked" && decision === "approved" ? "approved" : state}`;

const timeOf = (at: Date): string => `${at.toISOString().slice(0, 19)}Z`;

/** Everything stands in one line, and is no Markdown. */
const onOneLine = (text: string): string => inlineCode(visible(text).replace(/\s+/g, " "));

function lineOf(operation: Operation, isOpen: boolean, { hasSeveral, toolbox, where }: Listing): string {
  const { agent, createdAt, id, requesters, subAgent, tool } = operation;
  const who = [...(hasSeveral ? [`${agent}${where(operation)}`] : []), ...(subAgent === null ? [] : [subAgent])].join(
    " / ",
  );
  const what = isOpen
    ? wordingOf(operation, toolbox.find(tool), { isHere: true }).text
    : `${tool} (not everybody here may read what)`;
  return `- **${id}** ${stateOf(operation)}${who === "" ? "" : `, ${who}`}: ${what}, for ${requesters.join(", ")}, ${timeOf(createdAt).slice(0, 16).replace("T", " ")} UTC`;
}

function detailsOf(operation: Operation): string {
  const { agent, askedBecause, by, createdAt, decidedAt, decidedBecause, decidedBy, decision, endedAt } = operation;
  const { error, expiresAt, id, input, kind, requesters, result, roomId, startedAt, subAgent, taint, todo, tool } =
    operation;
  const because = decidedBecause === null ? "" : `: ${onOneLine(decidedBecause)}`;
  const facts = [
    `**Operation ${id}**: ${tool} (${kind}), ${stateOf(operation)}`,
    `- by: ${by === "person" ? `a command of ${requesters.join(", ")}` : agent}${subAgent === null ? "" : ` / ${subAgent}`}`,
    ...(by === "person" ? [] : [`- for: ${requesters.join(", ")}`]),
    `- conversation: ${roomId === HOME ? "home" : roomId}`,
    ...(todo === null ? [] : [`- todo: ${todo}`]),
    ...(taint.length === 0
      ? []
      : [`- untrusted text that was read before: ${taint.map((name) => onOneLine(name)).join(", ")}`]),
    ...(askedBecause === null
      ? []
      : [`- asked, because ${onOneLine(askedBecause)}${expiresAt ? `; until ${timeOf(expiresAt)}` : ""}`]),
    ...(decision && decidedAt ? [`- ${decision} by ${decidedBy} at ${timeOf(decidedAt)}${because}`] : []),
    `- ${startedAt ? `began ${timeOf(startedAt)}` : `recorded ${timeOf(createdAt)}`}${endedAt ? `, ended ${timeOf(endedAt)}` : ""}`,
    ...(error === null ? [] : [`- why: ${onOneLine(error)}`]),
  ].join("\n");
  const parts = [facts, "Input:", fence(visible(JSON.stringify(input, null, 2)), "json")];
  return [...parts, ...(result === null ? [] : ["Result:", fence(visible(result))])].join("\n\n");
}
