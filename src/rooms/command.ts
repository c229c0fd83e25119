import type { Agent } from "../agent/agent.ts";
import type { Answer, AnyCommand, CommandContext, CommandServices } from "../agent/command.ts";
import { type Commandable, helpFor, readCommandLine } from "../agent/command-line.ts";
import { describe, type Ended, examine, operate, refused, resultText, unknown } from "../agent/operation.ts";
import { includesLevel } from "../agent/permissions.ts";
import { utter } from "../agent/speech.ts";
import type { AnyTool, ToolOutcome } from "../agent/tool.ts";
import { toolContext } from "../agent/tool-context.ts";
import { inputOf, takeApart } from "../agent/toolbox.ts";
import type { StoredEvent } from "../database/events.ts";
import type { OutboxDraft } from "../database/outbox.ts";
import type { RoomContext } from "../database/rooms.ts";
import type { Effects } from "../database/routing.ts";
import { UserError } from "../lib/errors.ts";
import { digest } from "../lib/ids.ts";
import { splitUserId } from "../lib/matrix-id.ts";
import { nearest } from "../lib/nearest.ts";
import { render } from "../lmml/render.ts";
import { HomeserverError } from "../matrix/client.ts";
import { fenced } from "../matrix/markdown.ts";
import type { Message } from "../matrix/message.ts";
import { answering } from "../matrix/relation.ts";

interface Given {
  readonly event: StoredEvent;
  readonly message: Message;
  readonly room: RoomContext;
  readonly agentsHere: readonly Agent[];
}

/** People's commands: a human's own `m.text` that begins with the prefix. */
export class Commands {
  readonly #commands: readonly AnyCommand[];
  readonly #services: CommandServices;

  constructor(commands: readonly AnyCommand[], services: CommandServices) {
    this.#commands = commands;
    this.#services = services;
  }

  /** Answers in the room; `undefined` when the message is no command, or by somebody who may not even talk here. */
  readonly handle = async (given: Given): Promise<Pick<Effects, "outbox" | "wakes" | "operation"> | undefined> => {
    const { prefix, rights } = this.#services;
    const { body } = given.message;
    if (!body.startsWith(prefix) || !/^\p{L}/u.test(body.slice(prefix.length))) return undefined;
    const level = await rights.of(given.event.sender);
    if (!includesLevel(level, "chat")) return undefined;
    let answer: Answer;
    try {
      const { agents, line } = whoIsMeant(given.agentsHere, body.slice(prefix.length).trim());
      const context = { ...this.#services, ...given, level, agents, commands: this.#commands };
      answer = await this.#answer(context, line);
    } catch (error) {
      if (!(error instanceof UserError || error instanceof HomeserverError)) throw error;
      answer = { text: error.message };
    }
    const said = answer.text === "" ? [] : this.#say(given, answer.text);
    const { operation, outbox = [], wakes = [] } = answer;
    return { outbox: [...outbox, ...said], wakes, ...(operation && { operation }) };
  };

  async #answer(context: CommandContext, line: string): Promise<Answer> {
    const { prefix, toolbox, level, room } = context;
    const command = this.#find(line);
    if (command) {
      const rest = line.slice(wordsIn(command.command, line)).trim();
      if (command.where === "control" && room.kind !== "control")
        throw new UserError(`\`${prefix}${command.command}\` is a command of the control room.`);
      if (!includesLevel(level, command.level))
        throw new UserError(`To do this you need the right to ${command.level}; you have: ${level}.`);
      if (command.where === "agent") this.#onlyAgent(context, line);
      if (command.where === "room" && context.agents.length === 0) throw new UserError("There is no agent here.");
      const input = readLine(command, rest, prefix);
      const answer = await command.run(input, context);
      return typeof answer === "string" ? { text: answer } : answer;
    }
    const [word = ""] = line.toLowerCase().split(/\s/);
    const tool = context.agents.map((agent) => toolbox.byCommand(agent, word)).find((found) => found !== undefined);
    if (!tool) throw new UserError(this.#unknown(context, line));
    return runTool(this.#onlyAgent(context, line), tool, line.slice(word.length), context);
  }

  /** The longest command that the line begins with. */
  #find(line: string): AnyCommand | undefined {
    return this.#commands
      .filter(({ command }) => wordsIn(command, line) > 0)
      .sort((a, b) => b.command.length - a.command.length)[0];
  }

  #onlyAgent({ agents, prefix }: CommandContext, line: string): Agent {
    const [agent, another] = agents;
    if (!agent) throw new UserError("There is no agent here.");
    if (!another) return agent;
    const names = agents.map((one) => one.name).join(", ");
    throw new UserError(
      `Several agents are here (${names}). Name the one you mean: \`${prefix}${agent.name} ${line}\``,
    );
  }

  #unknown({ agents, prefix, room, toolbox }: CommandContext, line: string): string {
    const [first = "", second] = line.toLowerCase().split(/\s+/);
    const own = this.#commands
      .filter(({ where }) => where === "anywhere" || (where === "control") === (room.kind === "control"))
      .map(({ command }) => command);
    const tools = agents.flatMap((agent) => toolbox.of(agent).flatMap((tool) => tool.command ?? []));
    const family = this.#commands.map(({ command }) => command).filter((command) => command.startsWith(`${first} `));
    const known = family.length > 0 ? family : [...new Set([...own, ...tools])].sort();
    const typed = family.length > 0 || second === undefined ? [first, second].join(" ").trim() : first;
    const meant = nearest(typed, known) ?? nearest(`${first} ${second}`, known);
    const hint = meant === undefined ? "" : ` Did you mean \`${prefix}${meant}\`?`;
    const list = known.map((command) => `\`${prefix}${command}\``).join(", ");
    return `There is no command \`${prefix}${typed}\`.${hint} Commands: ${list}. \`${prefix}help\` explains them.`;
  }

  #say({ event, message, room, agentsHere }: Given, text: string): OutboxDraft[] {
    const sender = room.botJoined ? this.#services.client.botUserId : agentsHere[0]?.userId;
    if (sender === undefined) return [];
    return utter({
      sender,
      roomId: event.roomId,
      text,
      thread: answering(message.threadId, event.eventId),
      replyTo: message.threadId === undefined ? event.eventId : undefined,
      notice: true,
      key: digest("command answer", event.eventId),
    });
  }
}

/** A line may begin with the agent that it is for; a name alone asks for help. */
function whoIsMeant(agentsHere: readonly Agent[], line: string): { agents: readonly Agent[]; line: string } {
  const [first = ""] = line.split(/\s/);
  const named = agentsHere.find((agent) => first === agent.name || first === splitUserId(agent.userId).localpart);
  return named ? { agents: [named], line: line.slice(first.length).trim() || "help" } : { agents: agentsHere, line };
}

/** How many characters of the line are the command's words; 0 if it is another command. */
function wordsIn(command: string, line: string): number {
  const pattern = command.split(" ").join(String.raw`\s+`);
  return new RegExp(`^${pattern}(?=\\s|$)`, "i").exec(line)?.[0].length ?? 0;
}

function readLine(form: Commandable, line: string, prefix: string): Record<string, unknown> {
  try {
    return readCommandLine(form, line);
  } catch (error) {
    if (error instanceof UserError) throw new UserError(`${error.message}\n\n${helpFor(form, prefix)}`);
    throw error;
  }
}

/** An operation like a model's, through the same gate; it is recorded with all that follows from the command. */
async function runTool(agent: Agent, tool: AnyTool, line: string, context: CommandContext): Promise<Answer> {
  const { clock, event, message, operations, prefix } = context;
  const { input, todo } = takeApart(readLine({ ...tool, input: inputOf(tool) }, line, prefix));
  const request = { tool, input, todo };
  const origin = {
    agent,
    roomId: event.roomId,
    thread: answering(message.threadId, event.eventId),
    key: digest("command", event.eventId),
    chain: event.eventId,
    by: "person" as const,
    requesters: [event.sender],
    sources: [event.roomId],
    taint: [],
    todo,
    signal: new AbortController().signal,
  };
  const started = clock.monotonic();
  const forTool = await toolContext(context, origin);
  const { kind, verdict } = await examine(request, forTool);
  const call = describe(request, kind, origin);
  const carryOut = async (): Promise<Ended> => {
    if (verdict.decision !== "run") return refused(tool, verdict.reason);
    const begun = tool.repeatable
      ? undefined
      : await operations.begin(call, { agent: agent.name, roomId: event.roomId });
    return begun === undefined ? operate(request, kind, forTool) : unknown;
  };
  const { state, outcome, error } = await carryOut();
  const record = { ...call, state, result: resultText(outcome), milliseconds: clock.monotonic() - started };
  const sources = [event.roomId, ...(outcome.sources ?? [])];
  return {
    text: textOf(outcome, outcome.speaksIn === event.roomId),
    outbox: outcome.outbox ?? [],
    wakes: outcome.wakes ?? [],
    operation: { ...record, ...(error !== undefined && { error }), agent: agent.name, sources },
  };
}

function textOf({ result, verbatim }: ToolOutcome, spoken: boolean): string {
  if (typeof result !== "string") return spoken ? "" : fenced(render(result), "xml");
  return verbatim ? fenced(result) : result;
}
