import type { Notifier } from "../database/notify.ts";
import type { OutboxDraft } from "../database/outbox.ts";
import type { Conversation } from "../database/routing.ts";
import { Fenced } from "../database/steps.ts";
import type { ClaimedTurn, Turn } from "../database/turns.ts";
import { messageOf } from "../lib/errors.ts";
import { digest, HOME } from "../lib/ids.ts";
import { about } from "../lib/log.ts";
import { ModelError } from "../model/failure.ts";
import type { Agent } from "./agent.ts";
import { asked, threadOf } from "./cause.ts";
import type { Mind } from "./mind.ts";
import { utter } from "./speech.ts";
import { workTurn } from "./turn.ts";

/** Why a running turn is aborted: a person said stop, or the process ends and another will go on. */
class Stopped extends Error {}
class ShuttingDown extends Error {}

const keyOf = ({ agent, roomId }: Conversation): string => `${agent}|${roomId}`;

/** Runs the turns of this process, one at a time for each conversation. */
export class TurnRunner {
  readonly #mind: Mind;
  readonly #notifier: Notifier;
  readonly #onWaiting: (conversations: readonly Conversation[]) => void;
  readonly #running = new Map<
    string,
    { readonly turn: Turn; readonly controller: AbortController; readonly ended: Promise<void> }
  >();
  #closing = false;

  /** `onWaiting` hears of conversations that could not be worked on before and can be now. */
  constructor(mind: Mind, notifier: Notifier, onWaiting: (conversations: readonly Conversation[]) => void) {
    this.#mind = mind;
    this.#notifier = notifier;
    this.#onWaiting = onWaiting;
    notifier.on("stop", (keys) => void this.#hearOfStops(keys));
  }

  get running(): number {
    return this.#running.size;
  }

  /**
   * Does what there is to do in a conversation: at most one turn. Returns whether that is done: a process that ends
   * leaves it to another. Never throws for what one turn meets.
   */
  async run(conversation: Conversation): Promise<boolean> {
    const { directory, turns } = this.#mind;
    const known = await directory.recent(conversation.agent);
    if (this.#closing) return false;
    if (!known || known.pausedAt !== null) return true;
    const [agent = known, turn] = await Promise.all([
      directory.find(conversation.agent),
      turns.claim(conversation, known.settings.maxConcurrentTurns),
    ]);
    if (turn === "idle" || turn === "busy") return true;
    if (this.#closing) return false;
    const controller = new AbortController();
    const { promise: ended, resolve } = Promise.withResolvers<void>();
    this.#running.set(keyOf(conversation), { turn, controller, ended });
    const hideWork = this.#mind.showWork(agent, conversation.roomId);
    const started = this.#mind.clock.monotonic();
    let outcome: Parameters<Mind["onTurnEnded"]>[0] = "left";
    try {
      const subject = { agent: agent.name, room: turn.roomId, turn: turn.number };
      outcome = await about(subject, () => this.#work(agent, turn, controller.signal));
      return outcome !== "left";
    } finally {
      this.#mind.onTurnEnded(outcome, this.#mind.clock.monotonic() - started);
      hideWork();
      this.#running.delete(keyOf(conversation));
      resolve();
    }
  }

  /** Ends the conversation's turn at once, wherever it runs. Returns whether there was one. */
  async stop(conversation: Conversation, by: string): Promise<boolean> {
    const turn = await this.#mind.turns.running(conversation);
    if (!turn) return false;
    await this.#mind.turns.close(turn, "cancelled", `stopped by ${by}`);
    this.#abort(keyOf(conversation));
    this.#notifier.tell("stop", [keyOf(conversation)]);
    return true;
  }

  /** Lets running turns end by themselves for `graceMs`, then leaves them to whoever comes next. */
  async close(graceMs: number): Promise<void> {
    this.#closing = true;
    const ended = Promise.all([...this.#running.values()].map((running) => running.ended));
    const patience = new AbortController();
    await Promise.race([ended, this.#mind.clock.sleep(graceMs, patience.signal).catch(() => {})]);
    patience.abort();
    for (const { controller } of this.#running.values()) controller.abort(new ShuttingDown("the process ends"));
    await ended;
  }

  #abort(key: string): void {
    this.#running.get(key)?.controller.abort(new Stopped("the turn was stopped"));
  }

  /** Stops of another process; where word may have been missed, the rows tell. */
  async #hearOfStops(keys: readonly string[] | undefined): Promise<void> {
    if (keys) return keys.forEach((key) => void this.#abort(key));
    for (const [key, { turn }] of this.#running) {
      const open = await this.#mind.turns.running(turn).catch(() => turn);
      if (open?.id !== turn.id) this.#abort(key);
    }
  }

  async #work(agent: Agent, turn: ClaimedTurn, signal: AbortSignal): Promise<"done" | "failed" | "stopped" | "left"> {
    try {
      this.#onWaiting(await workTurn(this.#mind, agent, turn, signal));
      return "done";
    } catch (error) {
      if (error instanceof ShuttingDown) return "left";
      await this.#fail(agent, turn, error);
      return error instanceof Fenced || error instanceof Stopped ? "stopped" : "failed";
    }
  }

  async #fail(agent: Agent, turn: Turn, error: unknown): Promise<void> {
    const { log } = this.#mind;
    if (error instanceof Fenced || error instanceof Stopped) {
      log.info(messageOf(error));
    } else {
      log.error({ err: error }, "the turn failed");
      await this.#mind.turns.close(turn, "failed", messageOf(error), await this.#apology(agent, turn, error));
      this.#mind.onOutbox([turn.roomId]);
      this.#tellOperators(agent, turn, error);
    }
    this.#onWaiting(await this.#mind.turns.unread(agent.name));
  }

  /** A bug is told each time, trouble with the model once an hour. */
  #tellOperators(agent: Agent, turn: Turn, error: unknown): void {
    const { clock, tellOperators } = this.#mind;
    const what = `Turn ${turn.number} of ${agent.userId} failed`;
    if (error instanceof ModelError) {
      const hour = clock.now().toISOString().slice(0, 13);
      tellOperators(`${what}. The model is ${error.kind}: ${error.message}`, `model ${error.kind} ${hour}`);
    } else {
      tellOperators(`${what}, by a bug: ${messageOf(error)}. The log has more.`, `turn ${turn.id}`);
    }
  }

  /** One short notice to those who asked; what went wrong is the operator's business. */
  async #apology(agent: Agent, turn: Turn, error: unknown): Promise<OutboxDraft[]> {
    const wakes = await this.#mind.turns.absorb(turn, { more: false });
    if (!asked(wakes) || turn.roomId === HOME) return [];
    const unavailable = error instanceof ModelError;
    const text = unavailable
      ? "I cannot think right now: my model does not answer. Please ask me again in a while."
      : "Something went wrong while I was working on this. Those who run this bridge can read about it in its log.";
    return utter({
      sender: agent.userId,
      roomId: turn.roomId,
      text,
      thread: threadOf(wakes),
      notice: true,
      key: digest("apology", agent.userId, turn.id),
    });
  }
}
