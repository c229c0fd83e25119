import type { Notifier } from "../../adapters/database/notify.ts";
import { ModelError } from "../../adapters/model/failure.ts";
import { messageOf, RetryError, ShuttingDown, UserError } from "../../base/lib/errors.ts";
import type { Conversation } from "../../base/lib/ids.ts";
import { HOME, type UserId } from "../../base/lib/ids.ts";
import { about } from "../../base/lib/log.ts";
import { isTidying } from "../../base/prompt/default-mode.ts";
import { functionResult, systemEvent } from "../../base/prompt/ephemeris.ts";
import { toStored } from "../../base/prompt/stored.ts";
import type { Agent } from "../../domain/agents/agent.ts";
import { includesLevel, type Level } from "../../domain/rights/permissions.ts";
import { utter } from "../../domain/speech/utter.ts";
import type { OutboxDraft } from "../../domain/tables/outbox.ts";
import { Fenced } from "../../domain/tables/steps.ts";
import type { ClaimedTurn, OpenTurn, Turn } from "../../domain/tables/turns.ts";
import { cardOutcome } from "../operations/asking.ts";
import { hasEvent, threadOf } from "./cause.ts";
import { interruptionText, Parked, Stopped } from "./interruption.ts";
import type { Mind } from "./mind.ts";
import { conversationKey } from "./queue.ts";
import { recoveryFrom } from "./recovery.ts";
import { wasAnswered } from "./restored.ts";
import { keyInTurn } from "./state.ts";
import { workTurn } from "./turn.ts";

type TurnOutcome = Parameters<Mind["onTurnEnded"]>[0];

/** Runs the turns of this process, one at a time for each conversation. */
export class TurnRunner {
  readonly #mind: Mind;
  readonly #notifier: Notifier;
  readonly #onWaiting: (conversations: readonly Conversation[]) => void;
  readonly #running = new Map<
    string,
    { readonly turn: Turn; readonly controller: AbortController; readonly ended: Promise<void> }
  >();
  #isClosing = false;

  /** `onWaiting` is told of conversations that had to wait and can be worked on now. */
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
   * Works on a conversation: at most one turn. Returns false if the work is not done: a process that ends leaves it to
   * another, and one whose database has trouble tries it again. Errors of a turn are never thrown.
   */
  async run(conversation: Conversation): Promise<boolean> {
    const { directory, turns } = this.#mind;
    const known = await directory.lastKnown(conversation.agent);
    if (!known) return true;
    if (this.#isClosing) return false;
    const turn = await turns.claim(conversation, known.settings.maxConcurrentTurns);
    if (turn === "elsewhere") return this.#pass(conversation);
    if (typeof turn === "string") return true;
    const agent = directory.complete(turn.record);
    if (this.#isClosing) return false;
    const controller = new AbortController();
    const { promise: ended, resolve } = Promise.withResolvers<void>();
    this.#running.set(conversationKey(conversation), { turn, controller, ended });
    const hideWork = isTidying(turn) ? () => {} : this.#mind.showWork(agent, conversation.roomId);
    const started = this.#mind.clock.monotonic();
    let outcome: TurnOutcome = "left";
    const subject = { agent: agent.name, room: turn.roomId, turn: turn.number };
    try {
      outcome = await about(subject, () => this.#work(agent, turn, controller.signal));
      return outcome !== "left";
    } finally {
      const milliseconds = this.#mind.clock.monotonic() - started;
      about(subject, () => this.#mind.log.debug({ outcome, milliseconds }, "the turn is over"));
      this.#mind.onTurnEnded(outcome, milliseconds);
      hideWork();
      this.#running.delete(conversationKey(conversation));
      resolve();
    }
  }

  /**
   * Ends at once the conversation's turns, running in any process or waiting; with `which`, only these. Returns the ended
   * turns.
   */
  async stop(conversation: Conversation, by: string, which = (_turn: OpenTurn) => true): Promise<OpenTurn[]> {
    const { clock, operations, onOutbox, turns } = this.#mind;
    const [open, under] = await Promise.all([turns.open(conversation), operations.open(conversation)]);
    const meant = open.filter(which);
    const why = `stopped by ${by}`;
    for (const turn of meant) {
      const ended = under.filter(({ turnId }) => turnId === turn.id);
      const outbox = ended.flatMap((operation) =>
        cardOutcome(operation, { state: "interrupted", error: why }, this.#mind),
      );
      const results = ended.flatMap(({ callId, id, subAgent }) =>
        callId === null ? [] : { entry: toStored(functionResult(callId, interruptionText(why), id)), subAgent },
      );
      const end = { entry: toStored(systemEvent(clock.now(), `Turn ${turn.number} was ${why}.`)), subAgent: null };
      await turns.close(turn, "cancelled", why, { outbox, ephemeris: [end, ...results] });
      onOutbox(outbox.map((draft) => draft.roomId));
      if (turn.state !== "running") continue;
      this.#abort(conversationKey(conversation));
      this.#notifier.tell("stop", [conversationKey(conversation)]);
    }
    return meant;
  }

  /**
   * Stops turns, and operations of people's commands, because a person wants it. The people for whom they run may do so,
   * and everybody with the right to operate. Returns false if nothing was running.
   * @throws UserError if something runs, and the person may stop none of it
   */
  async stopFor(conversation: Conversation, { userId, level }: { userId: UserId; level: Level }): Promise<boolean> {
    const left: (readonly UserId[])[] = [];
    const may = (requesters: readonly UserId[]): boolean => {
      const isAllowed = requesters.includes(userId) || includesLevel(level, "operate");
      if (!isAllowed) left.push(requesters);
      return isAllowed;
    };
    const commands = this.#mind.underWay.stop(conversation, userId, (requester) => may([requester]));
    const turns = await this.stop(conversation, userId, ({ requesters }) => may(requesters));
    if (commands > 0 || turns.length > 0) return true;
    if (left.length === 0) return false;
    const others = [...new Set(left.flat())].join(", ") || "others";
    throw new UserError(`This is done for ${others}. To stop it you need the right to operate; you have: ${level}.`);
  }

  /** Waits `graceMs` for running turns to end by themselves, then leaves them to the next process. */
  async close(graceMs: number): Promise<void> {
    this.#isClosing = true;
    const ended = Promise.all([...this.#running.values()].map((running) => running.ended));
    const patience = new AbortController();
    await Promise.race([ended, this.#mind.clock.sleep(graceMs, patience.signal).catch(() => {})]);
    patience.abort();
    for (const { controller } of this.#running.values()) controller.abort(new ShuttingDown("the process ends"));
    await ended;
  }

  /** Tells the process that works in the conversation of new events: its turn might end without having seen them. */
  async #pass(conversation: Conversation): Promise<boolean> {
    const open = await this.#mind.turns.open(conversation);
    const running = open.find(({ state }) => state === "running");
    if (running) this.#notifier.tell("turns", [running.runner, conversation.agent, conversation.roomId]);
    return running !== undefined;
  }

  #abort(key: string): void {
    this.#running.get(key)?.controller.abort(new Stopped("the turn was stopped"));
  }

  /** Obeys stops from other processes; the rows show those of which the message was lost. */
  async #hearOfStops(keys: readonly string[] | undefined): Promise<void> {
    if (keys) return keys.forEach((key) => void this.#abort(key));
    for (const [key, { turn }] of this.#running) {
      const open = await this.#mind.turns.open(turn).catch(() => [{ ...turn, state: "running" }]);
      if (!open.some(({ id, state }) => id === turn.id && state === "running")) this.#abort(key);
    }
  }

  async #work(agent: Agent, turn: ClaimedTurn, signal: AbortSignal): Promise<TurnOutcome> {
    const { epoch, reason, requesters } = turn;
    this.#mind.log.debug({ reason, requesters, epoch }, "a turn begins");
    try {
      if (turn.isInherited && (await wasAnswered(this.#mind, turn, agent.userId)))
        return await this.#leave(agent, turn);
      this.#onWaiting(await workTurn(this.#mind, agent, turn, signal));
      return "done";
    } catch (error) {
      if (error instanceof ShuttingDown) return "left";
      if (error instanceof RetryError) {
        this.#mind.log.warn(`the turn is left open, and goes on later: ${messageOf(error)}`);
        return "left";
      }
      if (error instanceof Parked) {
        this.#onWaiting(error.waiting);
        return "parked";
      }
      await this.#fail(agent, turn, error);
      return error instanceof Fenced || error instanceof Stopped ? "stopped" : "failed";
    }
  }

  /** Ends a turn whose answer people have already. */
  async #leave(agent: Agent, turn: Turn): Promise<TurnOutcome> {
    const { clock, log, turns } = this.#mind;
    const why = "it was answered before an older copy of the database came back";
    log.info(`the turn is ended: ${why}`);
    const end = { entry: toStored(systemEvent(clock.now(), `Turn ${turn.number} was ended: ${why}.`)), subAgent: null };
    await turns.close(turn, "cancelled", why, { ephemeris: [end] });
    this.#onWaiting(await turns.findWaiting(agent.name));
    return "stopped";
  }

  async #fail(agent: Agent, turn: Turn, error: unknown): Promise<void> {
    const { log } = this.#mind;
    if (error instanceof Fenced || error instanceof Stopped) {
      log.info(messageOf(error));
    } else {
      log.error({ err: error }, "the turn failed");
      const outbox = await this.#apology(agent, turn, error);
      const recovery = recoveryFrom(agent, turn, error, this.#mind.clock);
      await this.#mind.turns.close(turn, "failed", messageOf(error), { outbox, recovery });
      this.#mind.onOutbox([turn.roomId]);
      this.#tellOperators(agent, turn, error);
    }
    this.#onWaiting(await this.#mind.turns.findWaiting(agent.name));
  }

  /** Tells those who run the bridge: of each bug, and of trouble with the model once an hour. */
  #tellOperators(agent: Agent, turn: Turn, error: unknown): void {
    const { clock, tellOperators } = this.#mind;
    const what = `Turn ${turn.number} of ${agent.userId} failed`;
    if (error instanceof ModelError) {
      const hour = clock.now().toISOString().slice(0, 13);
      tellOperators(`${what}. The model is ${error.kind}: ${error.message}`, `model ${error.kind} ${hour}`);
    } else {
      tellOperators(`${what}, by a bug: ${messageOf(error)}. The log has more.`, keyInTurn("failed", agent, turn));
    }
  }

  /** Writes one short notice to the people who asked; only the operator gets the details. */
  async #apology(agent: Agent, turn: Turn, error: unknown): Promise<OutboxDraft[]> {
    const wakes = await this.#mind.turns.absorb(turn, { takesMore: false });
    if (!hasEvent(wakes) || turn.roomId === HOME) return [];
    const isUnavailable = error instanceof ModelError;
    const text = isUnavailable
      ? "I cannot think right now: my model does not answer. Please ask me again in a while."
      : "Something went wrong while I was working on this. Those who run this bridge can read about it in its log.";
    return utter({
      sender: agent.userId,
      roomId: turn.roomId,
      text,
      thread: threadOf(wakes),
      isNotice: true,
      key: keyInTurn("apology", agent, turn),
    });
  }
}
