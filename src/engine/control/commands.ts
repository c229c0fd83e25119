import { HomeserverError } from "../../adapters/matrix/client.ts";
import type { Message } from "../../adapters/matrix/message.ts";
import { threadPlaceOf } from "../../adapters/matrix/relation.ts";
import { UserError } from "../../base/lib/errors.ts";
import { digest } from "../../base/lib/ids.ts";
import { splitUserId } from "../../base/lib/matrix-id.ts";
import { nearest, shortenTyped } from "../../base/lib/nearest.ts";
import type { Agent } from "../../domain/agents/agent.ts";
import { includesLevel, requireLevel } from "../../domain/rights/permissions.ts";
import { markTaint } from "../../domain/rights/trust.ts";
import { utterInstead } from "../../domain/speech/progress.ts";
import type { Utterance } from "../../domain/speech/utter.ts";
import type { Effects } from "../../domain/tables/effects.ts";
import type { StoredEvent } from "../../domain/tables/events.ts";
import type { OutboxDraft } from "../../domain/tables/outbox.ts";
import type { RoomContext } from "../../domain/tables/room-context.ts";
import {
  type Commandable,
  commandOf,
  familyOf,
  findForm,
  helpFor,
  readCommandLine,
  wordsFor,
} from "../operations/command-line.ts";
import { levelToCommand } from "../operations/gate.ts";
import type { AnyTool } from "../operations/tool.ts";
import { runTool } from "./command-operation.ts";
import type { Answer, AnyCommand, CommandContext, CommandServices } from "./define-command.ts";
import { showMistake } from "./mistake.ts";

interface Given {
  readonly event: StoredEvent;
  readonly message: Message;
  readonly room: RoomContext;
  readonly agentsHere: readonly Agent[];
}

/** Only where its process ended before it was answered can somebody have edited it. */
const edited =
  "This command was edited before it was answered, and the bridge was interrupted meanwhile. What was done of it is not known, and it is not carried out again. Look before you write it anew.";

const somebodyCame =
  "The answer is not shown: somebody has come meanwhile who may not read all that is in it. Ask again, and you are told what may be known here now.";

/** By which programs know the command that a message answers. */
const answers = ({ eventId }: StoredEvent) => ({ "org.clevernet.command": eventId });

/** Somebody began a command, and wrote none. */
const isEmpty = (body: string, prefix: string): boolean => body.replaceAll(prefix, "").trim() === "";

const isTool = (form: AnyCommand | AnyTool): form is AnyTool => "set" in form;

/** People's commands: a human's own `m.text` that begins with the prefix. */
export class Commands {
  readonly #commands: readonly AnyCommand[];
  readonly #services: CommandServices;

  constructor(commands: readonly AnyCommand[], services: CommandServices) {
    this.#commands = commands;
    this.#services = services;
  }

  /** True if a human's `m.text` with this body is a command, or would be if they might talk here. */
  readonly isOne = (body: string): boolean => {
    const { prefix } = this.#services;
    return body.startsWith(prefix) && (/^[^\S\n\r]*\p{L}/u.test(body.slice(prefix.length)) || isEmpty(body, prefix));
  };

  /** Answers in the room; `undefined` when the message is no command, or by somebody who may not even talk here. */
  readonly handle = async (
    given: Given,
  ): Promise<Pick<Effects, "outbox" | "unsaid" | "wakes" | "operation"> | undefined> => {
    const { prefix, rights } = this.#services;
    const { body } = given.message;
    if (!this.isOne(body)) return undefined;
    const level = await rights.of(given.event.sender);
    if (!includesLevel(level, "chat")) return undefined;
    const asked = this.#placeOf(given, true);
    const progress = asked && this.#services.openProgress({ ...asked, key: digest("progress", given.event.eventId) });
    let answer: Answer;
    try {
      if (given.event.editedAt !== null) throw new UserError(edited);
      if (isEmpty(body, prefix)) throw new UserError(`Write a command behind ${prefix}: \`${prefix}help\` lists them.`);
      const { agents, line } = whoIsMeant(given.agentsHere, body.slice(prefix.length).trim());
      const context = { ...this.#services, ...given, level, agents, progress, commands: this.#commands };
      answer = await this.#answer(context, line);
    } catch (error) {
      if (!(error instanceof UserError || error instanceof HomeserverError)) {
        void progress?.end().catch(() => {});
        throw error;
      }
      answer = { text: showMistake(error.message) };
    }
    const instead = await progress?.end();
    const place = this.#placeOf(given, await this.#services.events.isFollowed(given.event));
    const say = (text: string) => (place ? this.#say(given, { ...place, text }, instead) : []);
    const said = answer.text === "" ? [] : markTaint(say(answer.text), answer.taint ?? []);
    const { operation, outbox = [], wakes = [] } = answer;
    const unsaid = operation ? say(somebodyCame) : [];
    // A tool that asks people something, beside its answer, asks below it.
    return {
      outbox: operation ? [...said, ...outbox] : [...outbox, ...said],
      unsaid,
      wakes,
      ...(operation && { operation }),
    };
  };

  async #answer(context: CommandContext, line: string): Promise<Answer> {
    const { prefix, level, room } = context;
    const found = findForm(this.#formsHere(context), line);
    if (!found) throw new UserError(this.#noAgent(context, line) ?? this.#unknown(context, line));
    const { form, rest } = found;
    if (isTool(form)) return runTool(this.#onlyAgent(context, line), form, rest, context);
    if (form.where === "control" && room.kind !== "control")
      throw new UserError(`\`${prefix}${form.command}\` is a command of the control room.`);
    requireLevel(level, form.level);
    if (form.where === "agent") this.#onlyAgent(context, line);
    if (form.where === "room" && context.agents.length === 0) throw new UserError("There is no agent here.");
    const input = readLine(form, rest, prefix);
    const answer = await form.run(input, context);
    return typeof answer === "string" ? { text: answer } : answer;
  }

  /** All of the bridge's own commands, and the tools of the agents that are meant. */
  #formsHere({ agents, toolbox }: CommandContext): (AnyCommand | AnyTool)[] {
    return [...this.#commands, ...new Set(agents.flatMap((agent) => toolbox.findCommandable(agent)))];
  }

  #onlyAgent({ agents, prefix }: CommandContext, line: string): Agent {
    const [agent, another] = agents;
    if (!agent) throw new UserError("There is no agent here.");
    if (!another) return agent;
    const names = agents.map((one) => one.name).join(", ");
    throw new UserError(
      `Several agents are here (${names}). Name the one you mean: \`${prefix}${agent.name} ${shortenTyped(line)}\``,
    );
  }

  /** Tells whoever names an agent that is not here; undefined: the line names none. */
  #noAgent(context: CommandContext, line: string): string | undefined {
    const { agents, prefix } = context;
    const forms = this.#formsHere(context);
    const [first = ""] = line.split(/\s/, 1);
    const rest = line.slice(first.length).trim();
    if (!findForm(forms, rest) || familyOf(forms, first.toLowerCase()).length > 0) return undefined;
    const names = agents.map(({ name }) => name);
    const near = nearest(first, names);
    if (near === undefined && nearest(first, forms.flatMap(wordsFor)) !== undefined) return undefined;
    const none = `There is no agent \`${shortenTyped(first)}\` here, and no command of this name.`;
    if (near !== undefined) return `${none} Did you mean \`${prefix}${near} ${shortenTyped(rest)}\`?`;
    return `${none} ${names.length === 0 ? "No agent is in this room." : `Agents here: ${names.join(", ")}.`}`;
  }

  #unknown(context: CommandContext, line: string): string {
    const { level, prefix, room } = context;
    const [first = "", second] = line.toLowerCase().split(/\s+/);
    const forms = this.#formsHere(context)
      .filter((form) => includesLevel(level, isTool(form) ? levelToCommand(form) : form.level))
      .filter(
        (form) => isTool(form) || form.where === "anywhere" || (form.where === "control") === (room.kind === "control"),
      );
    const family = familyOf(this.#formsHere(context), first);
    const known = family.length > 0 ? family : [...new Set(forms.map(commandOf))].sort((a, b) => a.localeCompare(b));
    const typed = family.length > 0 || second === undefined ? [first, second].join(" ").trim() : first;
    const words = family.length > 0 ? family : forms.flatMap(wordsFor);
    const meant = nearest(`${first} ${second ?? ""}`.trim(), words) ?? nearest(typed, words);
    const hint = meant === undefined ? "" : ` Did you mean \`${prefix}${meant}\`?`;
    const list = known.map((command) => `\`${prefix}${command}\``).join(", ");
    return `There is no command \`${prefix}${shortenTyped(typed)}\`.${hint} Commands: ${list}. \`${prefix}help\` explains them.`;
  }

  /**
   * Where the command is answered, and by whom; undefined where nobody can.
   * @param quotes the command does not stand right above
   */
  #placeOf({ event, message, room, agentsHere }: Given, quotes: boolean): Omit<Utterance, "text"> | undefined {
    const sender = room.hasBotJoined ? this.#services.client.botUserId : agentsHere[0]?.userId;
    if (sender === undefined) return undefined;
    return {
      sender,
      roomId: event.roomId,
      thread: threadPlaceOf(message.threadId, event.eventId),
      replyTo: quotes && message.threadId === undefined ? event.eventId : undefined,
      isNotice: true,
      key: digest("command answer", event.eventId),
    };
  }

  /** @param instead key of the message whose place the answer takes */
  #say({ event }: Given, utterance: Utterance, instead: string | undefined): OutboxDraft[] {
    const drafts = utterInstead(utterance, instead);
    return drafts.map((draft) => ({ ...draft, content: { ...(draft.content as object), ...answers(event) } }));
  }
}

/** A line may begin with the agent that it is for; a name alone asks for help. */
function whoIsMeant(agentsHere: readonly Agent[], line: string): { agents: readonly Agent[]; line: string } {
  const [first = ""] = line.split(/\s/);
  const typed = first.toLowerCase();
  const named = agentsHere.find((agent) => typed === agent.name || typed === splitUserId(agent.userId).localpart);
  return named ? { agents: [named], line: line.slice(first.length).trim() || "help" } : { agents: agentsHere, line };
}

function readLine(form: Commandable, line: string, prefix: string): Record<string, unknown> {
  try {
    return readCommandLine(form, line);
  } catch (error) {
    if (error instanceof UserError) throw new UserError(`${error.message}\n\n${helpFor(form, prefix)}`);
    throw error;
  }
}
