import type { ChatModel } from "../../adapters/model/chat.ts";
import type { Arrival, Completion } from "../../adapters/model/completion.ts";
import type { ChatRequest } from "../../adapters/model/types.ts";
import { estimatePrompt } from "../../adapters/model/usage.ts";
import type { Clock } from "../../base/lib/clock.ts";
import { messageOf } from "../../base/lib/errors.ts";
import type { AgentName, RoomId, UserId } from "../../base/lib/ids.ts";
import type { Log } from "../../base/lib/log.ts";
import { type BudgetBook, BudgetReached, type Payer } from "./book.ts";

/** Tokens that are reserved for an answer at first; twice as many whenever more than this has arrived. */
const allowance = 1_000;

interface Metered extends Completion {
  readonly milliseconds: number;
  /** The key under which the call is reserved, where it is: whoever stores its usage settles it in the same statement. */
  readonly reservation: string | undefined;
}

interface Parts {
  readonly model: ChatModel;
  readonly book: BudgetBook;
  readonly clock: Clock;
  readonly log: Log;
}

/** A call that a model is answering now; its tokens are estimates: characters / 4. */
export interface CallUnderWay {
  readonly turnId: number | null;
  readonly agent: AgentName;
  readonly roomId: RoomId;
  readonly requesters: readonly UserId[];
  readonly model: string;
  readonly promptTokens: number;
  /** Tokens of the answer so far: text, thoughts, names and arguments of calls. */
  readonly completionTokens: number;
  readonly milliseconds: number;
}

/** The model as everybody calls it who thinks: no call begins that its payers' budgets do not allow. */
export class MeteredModel {
  readonly #parts: Parts;
  readonly #underWay = new Set<() => CallUnderWay>();

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /** Calls that this process waits for, the longest first. */
  underWay(): CallUnderWay[] {
    return [...this.#underWay].map((look) => look());
  }

  /**
   * One call, whose usage the caller stores with what follows from it. Throws a BudgetReached before anything is sent,
   * or in the middle of an answer that is longer than the budget; otherwise as `ChatModel.complete` does. What a call
   * that throws has used is stored.
   */
  async complete(
    request: ChatRequest,
    payer: Payer,
    signal: AbortSignal,
    onArrival: (arrival: Arrival) => void = () => {},
  ): Promise<Metered> {
    const { book, clock, model } = this.#parts;
    const started = clock.monotonic();
    const reserve = new Reservation(book, request, payer);
    await reserve.begin();
    const look = (): CallUnderWay => ({
      turnId: payer.turnId,
      agent: payer.agent.name,
      roomId: payer.roomId,
      requesters: payer.requesters,
      model: request.model,
      promptTokens: reserve.promptTokens,
      completionTokens: reserve.arrived,
      milliseconds: Math.round(clock.monotonic() - started),
    });
    this.#underWay.add(look);
    let completion: Completion;
    try {
      completion = await model.complete(request, AbortSignal.any([signal, reserve.reached]), (arrival) => {
        reserve.countHeard(arrival.chars);
        onArrival(arrival);
      });
    } catch (error) {
      await this.#recordBroken(reserve, Math.round(clock.monotonic() - started), signal);
      throw error;
    } finally {
      this.#underWay.delete(look);
    }
    await reserve.waitUntilReserved();
    return {
      ...completion,
      usage: book.priceOf(request.model, completion.usage),
      milliseconds: Math.round(clock.monotonic() - started),
      reservation: reserve.isHeld ? payer.key : undefined,
    };
  }

  /** Makes a call that is no step of a turn: its usage is stored here. */
  async ask(request: ChatRequest, payer: Payer, signal: AbortSignal): Promise<Completion> {
    const { milliseconds, reservation, ...completion } = await this.complete(request, payer, signal);
    const { agent, roomId, requesters, key } = payer;
    const call = { key, agent: agent.name, roomId, requesters, model: request.model, milliseconds };
    await this.#parts.book.table.record({ ...call, ...completion.usage });
    return completion;
  }

  async #recordBroken(reservation: Reservation, milliseconds: number, { aborted }: AbortSignal): Promise<void> {
    const { book, log } = this.#parts;
    const { request, payer } = reservation;
    const { key, agent, roomId, requesters } = payer;
    try {
      await reservation.waitUntilReserved();
      // A provider that gave no answer and was not interrupted charges nothing.
      if (reservation.arrived === 0 && !aborted) {
        if (reservation.isHeld) await book.table.release(key);
        return;
      }
      const promptTokens = reservation.promptTokens;
      const used = { promptTokens, cachedTokens: 0, completionTokens: reservation.arrived };
      const usage = book.priceOf(request.model, { ...used, costUsd: undefined, isEstimated: true });
      const call = { key, agent: agent.name, roomId, requesters, model: request.model, milliseconds };
      await book.table.record({ ...call, ...usage });
    } catch (error) {
      log.warn({ agent: agent.name }, `the usage of a call that broke off is not stored: ${messageOf(error)}`);
    }
  }
}

/** Amount that one call holds of its payers' budgets; it grows with the answer. */
class Reservation {
  arrived = 0;
  isHeld = false;
  readonly #book: BudgetBook;
  readonly request: ChatRequest;
  readonly payer: Payer;
  readonly #over = new AbortController();
  #granted = allowance;
  #estimated: number | undefined;
  #growing: Promise<void> | undefined;

  constructor(book: BudgetBook, request: ChatRequest, payer: Payer) {
    this.#book = book;
    this.request = request;
    this.payer = payer;
  }

  /** An estimate, made where it is asked for. */
  get promptTokens(): number {
    this.#estimated ??= estimatePrompt(this.request);
    return this.#estimated;
  }

  /** Aborts with a BudgetReached when more has arrived than is allowed. */
  get reached(): AbortSignal {
    return this.#over.signal;
  }

  async begin(): Promise<void> {
    const refused = await this.#reserve(this.#granted);
    if (refused) throw refused;
  }

  /** `chars` of the answer have arrived so far. */
  countHeard(chars: number): void {
    this.arrived = Math.ceil(chars / 4);
    if (this.isHeld && this.arrived > this.#granted) this.#growing ??= this.#grow();
  }

  /** Resolves when nothing more will be reserved. */
  async waitUntilReserved(): Promise<void> {
    await this.#growing;
  }

  async #grow(): Promise<void> {
    try {
      let refused: BudgetReached | undefined;
      for (const tokens of [this.arrived * 2, this.arrived + allowance / 4]) {
        refused = await this.#reserve(tokens);
        if (!refused) {
          this.#granted = tokens;
          return;
        }
      }
      this.#over.abort(refused);
    } catch {
      // The database does not answer: the next piece of the answer asks again.
    } finally {
      this.#growing = undefined;
    }
  }

  async #reserve(answerTokens: number): Promise<BudgetReached | undefined> {
    const accounts = this.#book.accounts(this.payer);
    if (accounts.length === 0) return undefined;
    const amount = this.#book.estimate(this.request.model, this.promptTokens, answerTokens);
    const refusal = await this.#book.table.reserve(this.payer.key, this.payer.turnId, accounts, amount);
    if (refusal) return new BudgetReached(refusal);
    this.isHeld = true;
    return undefined;
  }
}
