import { z } from "zod";
import { fence, inlineCode } from "../../adapters/matrix/markdown.ts";
import { lengthText } from "../../base/lib/length-text.ts";
import { beginning } from "../../base/prompt/measure.ts";
import { natureOf } from "../../domain/servers/server-settings.ts";
import type { Servers } from "../../domain/servers/servers.ts";
import { defineCommand, noInput } from "../../engine/control/define-command.ts";
import { serverTaint, textOfParts } from "../../engine/operations/server-outcome.ts";
import { lineOf, showText } from "../../engine/operations/shown-text.ts";

const descriptionMost = 200;
/** Longest list of definitions in one answer. */
const shownMost = 12_000;

const server = z.string().trim().min(1).describe("A server, as `mcp list` names it");

type Described = ReturnType<Servers["describe"]>;

export const commands = [
  defineCommand({
    command: "mcp list",
    description: "Lists the servers of tools in config.yaml, and which of them answer.",
    topic: "servers",
    where: "anywhere",
    level: "use",
    input: noInput,
    async run(_, { clock, prefix, servers }) {
      const names = servers.settings.map(({ name }) => name);
      if (names.length === 0) return "There are no servers of tools: `mcp` in config.yaml names none.";
      const lines = names.map((name) => `- ${summaryOf(servers.describe(name), clock.now())}`);
      return [...lines, "", `\`${prefix}mcp show SERVER\` lists the tools of one.`].join("\n");
    },
  }),
  defineCommand({
    command: "mcp show",
    examples: ["wiki"],
    description: "Lists the tools of a server, of which kind they are, and which of them are withheld.",
    topic: "servers",
    where: "anywhere",
    level: "use",
    input: z.object({ server }),
    async run({ server: name }, { clock, prefix, servers }) {
      const described = servers.describe(name);
      const lines = described.tools.map((row) => toolLine(described, row));
      const leftOut = described.leftOut.map(({ tool, why }) => `- ${inlineCode(lineOf(tool))}: left out, ${why}`);
      const text = [
        summaryOf(described, clock.now()),
        cutLines([...lines, ...leftOut]),
        ...(isWithheld(servers, name)
          ? [`Tools are withheld: \`${prefix}mcp accept ${name}\` shows an admin what they are now.`]
          : []),
      ].join("\n\n");
      return { text, taint: [serverTaint(name)] };
    },
  }),
  defineCommand({
    command: "mcp probe",
    examples: ["wiki"],
    description: "Asks a server now which tools it has.",
    topic: "servers",
    where: "anywhere",
    level: "operate",
    input: z.object({ server }),
    async run({ server: name }, { clock, servers }) {
      await servers.probe(name);
      return summaryOf(servers.describe(name), clock.now());
    },
  }),
  defineCommand({
    command: "mcp read",
    examples: ["wiki", "wiki notes://today"],
    description: "Lists what a server lets you read, or shows one thing of it.",
    topic: "servers",
    where: "anywhere",
    level: "use",
    input: z.object({
      server,
      uri: z.string().trim().min(1).max(4_000).optional().describe("Its name, as the list without it has it"),
    }),
    positional: ["uri"],
    async run({ server: name, uri }, { prefix, servers }) {
      const taint = [serverTaint(name)];
      if (uri !== undefined) {
        const shown = showText(textOfParts(await servers.read(name, uri)));
        const text = shown.length > shownMost ? `${beginning(shown, shownMost)}\n(cut)` : shown;
        return { text: text === "" ? "It is empty." : fence(text), taint };
      }
      const listed = await servers.resources(name);
      if (listed.length === 0) return `The server ${inlineCode(name)} lists nothing to read.`;
      const lines = listed.map((one) => `- ${inlineCode(lineOf(one.uri))}: ${inlineCode(lineOf(one.name) || "-")}`);
      return { text: `${cutLines(lines)}\n\n\`${prefix}mcp read ${name} NAME\` shows one.`, taint };
    },
  }),
  defineCommand({
    command: "mcp accept",
    examples: ["wiki", "wiki 3f9a2c1b"],
    description:
      "Shows what tools of a server are now that were others, or not there, before; with the code that it shows, agents are offered exactly these.",
    topic: "servers",
    where: "anywhere",
    level: "admin",
    input: z.object({
      server,
      code: z.string().trim().optional().describe("The code that the command shows without it"),
    }),
    positional: ["code"],
    async run({ server: name, code }, { audit, event, prefix, servers }) {
      const withheld = servers.withheld(name);
      if (withheld.tools.size === 0) return `No tool of ${inlineCode(name)} is withheld.`;
      if (code === undefined || code !== withheld.code) {
        const texts = [...withheld.tools].map(([tool, definition]) =>
          showText(`${name}__${tool}: ${JSON.stringify(definition, undefined, 1)}`),
        );
        const shown = texts.join("\n\n");
        if (shown.length > shownMost)
          return `${withheld.tools.size} tools of ${inlineCode(name)} are withheld, and are too long to be shown: ${[...withheld.tools.keys()].slice(0, 50).map(inlineCode).join(", ")}. Leave some of them out with \`mcp.${name}.include\` in config.yaml. To accept them unseen: \`${prefix}mcp accept ${name} ${withheld.code}\``;
        const changed = code === undefined ? "" : "The server has changed them meanwhile. ";
        const text = `${changed}These are the tools of ${inlineCode(name)} that are withheld, in the words of the server:\n\n${fence(shown)}\n\nTo offer exactly these: \`${prefix}mcp accept ${name} ${withheld.code}\``;
        return { text, taint: [serverTaint(name)] };
      }
      const names = await servers.accept(name, withheld.tools);
      const subject = `server ${name}: tools accepted`;
      await audit.record({ key: event.eventId, actor: event.sender, subject, before: null, after: names.join(", ") });
      return `Agents with the server ${inlineCode(name)} have these tools from their next step on: ${names.map(inlineCode).join(", ")}.`;
    },
  }),
];

const isWithheld = (servers: Servers, name: string): boolean => servers.withheld(name).tools.size > 0;

function summaryOf({ condition, settings: { name }, tools }: Described, now: Date): string {
  const offered = tools.filter(({ isOffered }) => isOffered).length;
  const withheld = tools.filter(({ isOffered, seen }) => !isOffered && seen !== null).length;
  const counts = `${offered} tools${withheld > 0 ? `, and ${withheld} that are withheld` : ""}`;
  if (condition.state === "unasked") return `${inlineCode(name)} was not asked yet; ${counts}`;
  const since = lengthText(Math.max(0, (now.getTime() - condition.since.getTime()) / 1_000));
  return condition.state === "answers"
    ? `${inlineCode(name)} answers, for ${since}: ${counts}`
    : `${inlineCode(name)} does not answer, for ${since}: ${condition.why}; ${counts}`;
}

function toolLine({ settings }: Described, { accepted, isOffered, name, seen }: Described["tools"][number]): string {
  const definition = accepted ?? seen;
  if (definition === null) return `- ${inlineCode(name)}`;
  const { kind, isOpenWorld, isRepeatable } = natureOf(settings, definition);
  const facts = [
    kind,
    ...(isOpenWorld ? ["open to the world"] : []),
    ...(isRepeatable ? ["may be repeated"] : []),
    ...(isOffered ? [] : [seen === null ? "not there now" : accepted === null ? "new, withheld" : "changed, withheld"]),
  ];
  const tool = inlineCode(`${settings.name}__${name}`);
  return `- ${tool} (${facts.join(", ")}): ${inlineCode(lineOf(definition.description, descriptionMost) || "-")}`;
}

/** Lines up to the longest answer. */
function cutLines(lines: readonly string[]): string {
  let length = 0;
  const shown = lines.filter((line) => {
    length += line.length + 1;
    return length <= shownMost;
  });
  const more = lines.length - shown.length;
  return [...shown, ...(more > 0 ? [`- and ${more} more`] : [])].join("\n");
}
