import { functionCall, functionResult, systemEvent, thought } from "../context/ephemeris.ts";
import { layout } from "../context/layout.ts";
import {
  lastTextSpeaks,
  nobodyHeardYou,
  oneCallAtATime,
  onlyFunctionsSpeak,
  thinkBeforeCalling,
} from "../context/reminders.ts";
import type { OutboxDraft } from "../database/outbox.ts";
import type { Conversation } from "../database/routing.ts";
import type { TakenWake, Turn } from "../database/turns.ts";
import { digest, HOME, type RoomId } from "../lib/ids.ts";
import type { Element } from "../lmml/element.ts";
import { parse } from "../lmml/parse.ts";
import { render } from "../lmml/render.ts";
import type { ToolCall } from "../model/completion.ts";
import type { Agent } from "./agent.ts";
import { asked, requesters, threadOf } from "./cause.ts";
import type { Mind } from "./mind.ts";
import { operate, outcomeUnknown, parametersOf, prepare } from "./operation.ts";
import { utter } from "./speech.ts";
import { Journal } from "./step.ts";
import type { ToolContext } from "./tool.ts";

/** What is kept of a model call: the turn goes on from it as if the call had just been made. */
interface Thinking {
  readonly at: string;
  readonly text: string;
  readonly thought: string;
  readonly calls: readonly ToolCall[];
  readonly ends: boolean;
}

interface Acting {
  /** The `functionResult`, as LMML. */
  readonly result: string;
  readonly spoke: boolean;
  readonly ends: boolean;
}

const refusedForThought = `Not carried out: ${thinkBeforeCalling}`;
const refusedForCompany = `Not carried out: ${oneCallAtATime}`;

/**
 * Works a turn through to its end, from wherever its journal stands. Returns the agent's conversations that wait.
 * Throws `Fenced` when somebody else has taken the turn over, the signal's reason when it is stopped, and whatever
 * the model or a bug throws: the turn is then still open, and the caller decides what becomes of it.
 */
export async function workTurn(mind: Mind, agent: Agent, turn: Turn, signal: AbortSignal): Promise<Conversation[]> {
  // A turn that nobody has taken over begins with nothing written.
  const written = turn.epoch === 1 ? [] : await mind.turns.journal(turn);
  return new TurnWork(mind, agent, turn, signal, new Journal(mind.turns, turn, written)).run();
}

class TurnWork {
  readonly #mind: Mind;
  readonly #agent: Agent;
  readonly #turn: Turn;
  readonly #signal: AbortSignal;
  readonly #journal: Journal;
  /** Thoughts, calls and results of this turn so far. */
  readonly #entries: Element[] = [];
  #sources: readonly RoomId[];
  #spoke = false;
  #reminded = false;
  #calls = 0;

  constructor(mind: Mind, agent: Agent, turn: Turn, signal: AbortSignal, journal: Journal) {
    this.#mind = mind;
    this.#agent = agent;
    this.#turn = turn;
    this.#signal = signal;
    this.#journal = journal;
    this.#sources = turn.sources;
  }

  async run(): Promise<Conversation[]> {
    for (let iteration = 1; iteration <= this.#agent.settings.maxIterations; iteration++) {
      this.#signal.throwIfAborted();
      const wakes = await this.#mind.turns.absorb(this.#turn, { more: !this.#journal.replays });
      const { thinking, waiting } = await this.#think(wakes);
      if (thinking.ends) return waiting;
      if (thinking.calls.length === 0) this.#reminded = true;
      const ended = await this.#act(thinking, wakes);
      if (ended) return ended;
    }
    return this.#reachLimit(await this.#mind.turns.absorb(this.#turn, { more: false }));
  }

  async #think(wakes: readonly TakenWake[]): Promise<{ thinking: Thinking; waiting: Conversation[] }> {
    const step = this.#journal.take<Thinking>("model");
    if (step.done) {
      this.#entries.push(...this.#entriesOf(step.done));
      return { thinking: step.done, waiting: [] };
    }
    const { agent, clock, model, renders, toolbox, view } = this.#dependencies();
    const { settings } = agent;
    const sight = await view.of(agent, this.#turn, wakes, this.#entries, this.#reminders());
    this.#sources = [...new Set([...this.#sources, ...sight.sources])];
    const prompt = layout(sight.world, settings.layout);
    const started = clock.monotonic();
    // The render is kept while the model works: it must be findable for a redaction that comes meanwhile.
    const [completion] = await Promise.all([
      model.complete(
        {
          model: view.modelOf(agent),
          temperature: settings.temperature,
          messages: [
            { role: "system", content: prompt.system },
            { role: "user", content: prompt.user },
          ],
          tools: toolbox.definitions(agent),
          parallelToolCalls: !settings.agentFlags.includes("PreventParallelFunctionCalls"),
          sessionId: digest("session", this.#turn.agent, this.#turn.roomId),
        },
        this.#signal,
      ),
      renders.keep({
        turnId: this.#turn.id,
        n: step.n,
        system: prompt.system,
        prompt: prompt.user,
        eventIds: prompt.eventIds,
      }),
    ]);
    const { text, thought: reasoning, toolCalls: calls } = completion;
    const speech = settings.answer === "text" && calls.length === 0 ? this.#speak(text, wakes, step.n) : [];
    const silent = asked(wakes) && !this.#spoke && speech.length === 0;
    const thinking: Thinking = {
      at: clock.now().toISOString(),
      text,
      thought: reasoning,
      calls,
      ends: calls.length === 0 && !(silent && !this.#reminded),
    };
    const entries = this.#entriesOf(thinking);
    const waiting = await this.#journal.commit({
      n: step.n,
      name: "model",
      result: thinking,
      outbox: speech,
      ephemeris: entries.map((entry) => render(entry)),
      usage: { ...completion.usage, model: view.modelOf(agent), milliseconds: Math.round(clock.monotonic() - started) },
      sources: this.#sources,
      seen: sight.seen,
      ends: thinking.ends,
    });
    this.#entries.push(...entries);
    this.#announce(speech);
    return { thinking, waiting };
  }

  /** Carries out what a step asked for, in order. Returns the waiting conversations if that ends the turn. */
  async #act(thinking: Thinking, wakes: readonly TakenWake[]): Promise<Conversation[] | undefined> {
    const { agentFlags } = this.#agent.settings;
    const thoughtless = thinking.text === "" && thinking.thought === "";
    let ending = false;
    for (const [index, call] of thinking.calls.entries()) {
      this.#signal.throwIfAborted();
      const id = this.#callId(index, thinking.calls.length);
      const refusal =
        thoughtless && agentFlags.includes("PreventFunctionCallsWithoutThoughts")
          ? refusedForThought
          : index > 0 && agentFlags.includes("PreventParallelFunctionCalls")
            ? refusedForCompany
            : undefined;
      const last = index === thinking.calls.length - 1;
      const { acting, waiting } = await this.#operate(id, call, refusal, wakes, (ends) => last && (ending || ends));
      this.#entries.push(parse(acting.result));
      this.#spoke ||= acting.spoke;
      ending ||= acting.ends;
      if (last && ending) return waiting;
    }
    return undefined;
  }

  async #operate(
    id: string,
    call: ToolCall,
    refusal: string | undefined,
    wakes: readonly TakenWake[],
    endsTurn: (ends: boolean) => boolean,
  ): Promise<{ acting: Acting; waiting: Conversation[] }> {
    const step = this.#journal.take<Acting>(`call ${call.name}`);
    if (step.done) return { acting: step.done, waiting: [] };
    const { agent, clock, directory, history, rights, rooms, toolbox } = this.#dependencies();
    const prepared = refusal === undefined ? prepare(toolbox, agent, call) : { refusal };
    let outcome: Awaited<ReturnType<typeof operate>>;
    if ("refusal" in prepared) outcome = { result: prepared.refusal };
    else if (step.interrupted && !prepared.tool.repeatable) outcome = { result: outcomeUnknown };
    else {
      if (!prepared.tool.repeatable) await this.#journal.begin(step.n, `call ${call.name}`);
      const context: ToolContext = {
        agent,
        roomId: this.#turn.roomId,
        threadId: threadOf(wakes),
        key: this.#key(step.n),
        now: clock.now(),
        rooms,
        agents: directory,
        signal: this.#signal,
      };
      const level = await rights.leastOf(requesters(wakes, agent.owner));
      outcome = await operate({ ...prepared, by: "model", level, sources: this.#sources }, context, history);
    }
    const result = render(functionResult(id, outcome.result));
    const acting: Acting = { result, spoke: outcome.speaksIn === this.#turn.roomId, ends: outcome.endsTurn ?? false };
    const waiting = await this.#journal.commit({
      n: step.n,
      name: `call ${call.name}`,
      result: acting,
      outbox: outcome.outbox ?? [],
      ephemeris: [result],
      ends: endsTurn(acting.ends),
    });
    this.#announce(outcome.outbox ?? []);
    return { acting, waiting };
  }

  async #reachLimit(wakes: readonly TakenWake[]): Promise<Conversation[]> {
    const { agent, clock } = this.#dependencies();
    const limit = `The turn ended: it reached its limit of ${agent.settings.maxIterations} steps.`;
    const step = this.#journal.take("limit");
    const notice =
      asked(wakes) && !this.#spoke && this.#turn.roomId !== HOME
        ? utter({
            sender: agent.userId,
            roomId: this.#turn.roomId,
            text: "I came to the limit of my steps before I had an answer. Ask me again, perhaps in smaller pieces.",
            threadId: threadOf(wakes),
            notice: true,
            key: this.#key(step.n),
          })
        : [];
    const waiting = await this.#journal.commit({
      n: step.n,
      name: "limit",
      result: {},
      outbox: notice,
      ephemeris: [render(systemEvent(clock.now(), limit))],
      ends: true,
    });
    this.#announce(notice);
    return waiting;
  }

  #dependencies() {
    return { ...this.#mind, agent: this.#agent };
  }

  #reminders(): string[] {
    const { answer, agentFlags } = this.#agent.settings;
    return [
      answer === "tool" ? onlyFunctionsSpeak : lastTextSpeaks,
      ...(agentFlags.includes("PreventFunctionCallsWithoutThoughts") ? [thinkBeforeCalling] : []),
      ...(agentFlags.includes("PreventParallelFunctionCalls") ? [oneCallAtATime] : []),
      ...(this.#reminded ? [nobodyHeardYou] : []),
    ];
  }

  #entriesOf(thinking: Thinking): Element[] {
    const at = new Date(thinking.at);
    const thoughts = [thinking.thought, thinking.text].filter((text) => text !== "").map((text) => thought(at, text));
    const calls = thinking.calls.map((call, index) =>
      functionCall(this.#callId(index, 0), call.name, parametersOf(call.arguments)),
    );
    this.#calls += calls.length;
    return [...thoughts, ...calls];
  }

  /** Ids of calls rise through the turn; those of a step's calls are asked for after they were counted. */
  #callId(index: number, counted: number): string {
    return `fc${this.#turn.number}.${this.#calls - counted + index + 1}`;
  }

  #speak(text: string, wakes: readonly TakenWake[], n: number): OutboxDraft[] {
    if (text === "" || this.#turn.roomId === HOME) return [];
    return utter({
      sender: this.#agent.userId,
      roomId: this.#turn.roomId,
      text,
      threadId: threadOf(wakes),
      key: this.#key(n),
    });
  }

  #key(n: number): string {
    return digest("turn", this.#agent.userId, this.#turn.id, n);
  }

  #announce(outbox: readonly OutboxDraft[]): void {
    this.#mind.onThought(this.#agent.name);
    if (outbox.length > 0) this.#mind.onOutbox(outbox.map((draft) => draft.roomId));
  }
}
