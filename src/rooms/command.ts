import type { Agent, AgentDirectory } from "../agent/agent.ts";
import { helpFor, readCommandLine, usageOf } from "../agent/command-line.ts";
import { operate } from "../agent/operation.ts";
import { includesLevel, type Level } from "../agent/permissions.ts";
import type { Rights } from "../agent/rights.ts";
import type { TurnRunner } from "../agent/runner.ts";
import { fileDraft, utter } from "../agent/speech.ts";
import type { AnyTool } from "../agent/tool.ts";
import type { Toolbox } from "../agent/toolbox.ts";
import type { StoredEvent } from "../database/events.ts";
import type { History } from "../database/history.ts";
import type { OutboxDraft } from "../database/outbox.ts";
import type { Renders } from "../database/renders.ts";
import type { RoomContext, Rooms } from "../database/rooms.ts";
import type { Turns } from "../database/turns.ts";
import type { Clock } from "../lib/clock.ts";
import { UserError } from "../lib/errors.ts";
import { digest, type UserId } from "../lib/ids.ts";
import { splitUserId } from "../lib/matrix-id.ts";
import { render } from "../lmml/render.ts";
import type { Message } from "../matrix/message.ts";

export interface CommandParts {
  readonly prefix: string;
  readonly botUserId: UserId;
  readonly rights: Rights;
  readonly rooms: Rooms;
  readonly history: History;
  readonly turns: Turns;
  readonly renders: Renders;
  readonly directory: AgentDirectory;
  readonly toolbox: Toolbox;
  readonly runner: TurnRunner;
  readonly clock: Clock;
  readonly modelOf: (agent: Agent) => string;
}

interface Command {
  readonly event: StoredEvent;
  readonly message: Message;
  readonly room: RoomContext;
  readonly agentsHere: readonly Agent[];
}

interface Answer {
  readonly text: string;
  readonly outbox?: readonly OutboxDraft[];
}

/** Commands that are no tools. */
const plain = {
  help: { usage: "help [COMMAND]", says: "what can be commanded here" },
  status: { usage: "status", says: "what the agent is doing, with which model and rights" },
  stop: { usage: "stop", says: "ends the agent's running turn at once" },
  show: { usage: "show turn [N]", says: "what the agent was shown in a turn here, exactly, as a file" },
} as const satisfies Record<string, { usage: string; says: string }>;

/** People's commands: a human's own `m.text` that begins with the prefix. */
export class Commands {
  readonly #parts: CommandParts;

  constructor(parts: CommandParts) {
    this.#parts = parts;
  }

  /** Answers in the room; `undefined` when the message is no command, or by somebody who may not even talk here. */
  readonly handle = async (command: Command): Promise<OutboxDraft[] | undefined> => {
    const { prefix, rights } = this.#parts;
    const { body } = command.message;
    if (!body.startsWith(prefix) || !/^\p{L}/u.test(body.slice(prefix.length))) return undefined;
    const level = await rights.of(command.event.sender);
    if (!includesLevel(level, "chat")) return undefined;
    let answer: Answer;
    try {
      answer = await this.#answer(command, level, body.slice(prefix.length).trim());
    } catch (error) {
      if (!(error instanceof UserError)) throw error;
      answer = { text: error.message };
    }
    const said = answer.text === "" ? [] : this.#say(command, answer.text);
    return [...(answer.outbox ?? []), ...said];
  };

  async #answer(command: Command, level: Level, line: string): Promise<Answer> {
    const [first = "", ...others] = line.split(/\s+/);
    const named = command.agentsHere.find(
      (agent) => first === agent.name || first === splitUserId(agent.userId).localpart,
    );
    const word = (named ? (others[0] ?? "help") : first).toLowerCase();
    const rest = line
      .slice(line.indexOf(named ? (others[0] ?? "") : first) + (named ? (others[0] ?? "") : first).length)
      .trim();
    const agents = named ? [named] : command.agentsHere;
    if (word === "help") return { text: this.#help(agents, rest) };
    if (word === "status")
      return { text: (await Promise.all(agents.map((agent) => this.#status(agent, command)))).join("\n\n") };
    const [agent, another] = agents;
    if (!agent) return { text: "There is no agent here." };
    if (another) {
      const names = agents.map((one) => one.name).join(", ");
      throw new UserError(
        `Several agents are here (${names}). Name the one you mean: \`${this.#parts.prefix}${agent.name} ${line}\``,
      );
    }
    if (word === "stop") return { text: await this.#stop(agent, command, level) };
    if (word === "show") return this.#show(agent, command, level, rest);
    const tool = this.#parts.toolbox.byCommand(agent, word);
    if (!tool) throw new UserError(this.#unknown(agent, word));
    return this.#run(agent, tool, command, level, rest);
  }

  async #run(agent: Agent, tool: AnyTool, { event, message }: Command, level: Level, line: string): Promise<Answer> {
    const { prefix, rooms, history, directory, clock } = this.#parts;
    let input: Record<string, unknown>;
    try {
      input = readCommandLine(tool, line);
    } catch (error) {
      if (error instanceof UserError) throw new UserError(`${error.message}\n\n${helpFor(tool, prefix)}`);
      throw error;
    }
    const outcome = await operate(
      { tool, input, by: "person", level, sources: [event.roomId] },
      {
        agent,
        roomId: event.roomId,
        threadId: message.threadId,
        key: digest("command", event.eventId),
        now: clock.now(),
        rooms,
        agents: directory,
        signal: new AbortController().signal,
      },
      history,
    );
    const spoken = outcome.speaksIn === event.roomId;
    const text =
      typeof outcome.result === "string"
        ? outcome.result
        : spoken
          ? ""
          : `\`\`\`xml\n${render(outcome.result)}\n\`\`\``;
    return { text, outbox: outcome.outbox ?? [] };
  }

  #help(agents: readonly Agent[], word: string): string {
    const { prefix, toolbox } = this.#parts;
    const tools = [...new Set(agents.flatMap((agent) => toolbox.of(agent)))].filter(
      (tool) => tool.command !== undefined,
    );
    const asked = tools.find((tool) => tool.command === word || tool.name.toLowerCase() === word.toLowerCase());
    if (asked) return helpFor(asked, prefix);
    const lines = [
      ...Object.values(plain).map((command) => `- \`${prefix}${command.usage}\`: ${command.says}`),
      ...tools.map((tool) => `- \`${usageOf(tool, prefix)}\`: ${tool.description}`),
    ];
    const several = agents.length > 1 ? `\n\nSeveral agents are here: write \`${prefix}NAME COMMAND\`.` : "";
    return `${lines.join("\n")}${several}`;
  }

  async #status(seen: Agent, { event }: Command): Promise<string> {
    const { turns, directory, modelOf, clock } = this.#parts;
    // Another command may just have changed what the router has seen.
    const agent = (await directory.find(seen.name)) ?? seen;
    const turn = await turns.running({ agent: agent.name, roomId: event.roomId });
    const seconds = turn ? Math.round((clock.now().getTime() - turn.startedAt.getTime()) / 1000) : 0;
    return [
      `**${agent.displayName}** (${agent.userId})`,
      `- model: ${modelOf(agent)}`,
      `- mode: ${agent.settings.mode}`,
      `- wakes by itself: ${agent.wakeUpTimerSeconds === null ? "never" : `after ${agent.wakeUpTimerSeconds} s without a turn`}`,
      turn ? `- at work here: turn ${turn.number} (${turn.reason}), for ${seconds} s` : "- at work here: no",
    ].join("\n");
  }

  /** Whoever a turn works for may stop it, and whoever may operate. */
  async #stop(agent: Agent, { event }: Command, level: Level): Promise<string> {
    const conversation = { agent: agent.name, roomId: event.roomId };
    const turn = await this.#parts.turns.running(conversation);
    if (!turn) return `${agent.displayName} is not at work here.`;
    if (!turn.requesters.includes(event.sender) && !includesLevel(level, "operate")) {
      throw new UserError(
        `This turn works for ${turn.requesters.join(", ")}. To stop it you need the right to operate; you have: ${level}.`,
      );
    }
    await this.#parts.runner.stop(conversation, event.sender);
    return `${agent.displayName} was stopped.`;
  }

  /** Only where everybody in the room may read all that was shown. */
  async #show(agent: Agent, { event, message }: Command, level: Level, line: string): Promise<Answer> {
    const { history, prefix, renders, rooms, turns } = this.#parts;
    if (!includesLevel(level, "use"))
      throw new UserError(`To read turns you need the right to use; you have: ${level}.`);
    const [, number] = /^turn(?:\s+(\d{1,15}))?$/.exec(line) ?? [];
    if (!line.startsWith("turn") || (number === undefined && line !== "turn"))
      throw new UserError(`Usage: \`${prefix}${plain.show.usage}\``);
    const turn = await turns.shown(
      { agent: agent.name, roomId: event.roomId },
      number === undefined ? undefined : Number(number),
    );
    const shown = turn ? await renders.of(turn.id) : [];
    if (!turn || shown.length === 0)
      throw new UserError(`There is no such turn of ${agent.displayName} in this room within the last 3 days.`);
    if (!(await history.mayReadAll(await rooms.humans(event.roomId), turn.sources, agent.owner))) {
      throw new UserError("Something was shown in that turn which not everybody in this room may read.");
    }
    const text = shown
      .map(({ n, system, prompt }) => `# Step ${n}\n\n## System\n\n${system}\n\n## User\n\n${prompt}`)
      .join("\n\n");
    const key = digest("show", event.eventId);
    const name = `turn-${turn.number}.md`;
    return {
      text: "",
      outbox: [fileDraft({ sender: agent.userId, roomId: event.roomId, name, text, threadId: message.threadId, key })],
    };
  }

  #unknown(agent: Agent, word: string): string {
    const { prefix, toolbox } = this.#parts;
    const known = [...Object.keys(plain), ...toolbox.of(agent).flatMap((tool) => tool.command ?? [])].sort();
    return `There is no command \`${prefix}${word}\`. Commands: ${known.map((name) => `\`${prefix}${name}\``).join(", ")}. \`${prefix}help\` explains them.`;
  }

  #say({ event, message, room, agentsHere }: Command, text: string): OutboxDraft[] {
    const sender = room.botJoined ? this.#parts.botUserId : agentsHere[0]?.userId;
    if (sender === undefined) return [];
    return utter({
      sender,
      roomId: event.roomId,
      text,
      threadId: message.threadId,
      replyTo: message.threadId === undefined ? event.eventId : undefined,
      notice: true,
      key: digest("command answer", event.eventId),
    });
  }
}
