import OpenAI from "openai";
import type { Clock } from "../../base/lib/clock.ts";
import { secret } from "../../base/lib/ids.ts";
import type { Log } from "../../base/lib/log.ts";
import { fetchWithin } from "../../base/lib/outside.ts";
import { attemptOnce } from "./attempt.ts";
import type { Arrival, Completion } from "./completion.ts";
import { diagnose, type Failure, ModelError } from "./failure.ts";
import { refusalOfImages } from "./images.ts";
import { findRefusedOption, type OptionName, RefusedOptions } from "./options.ts";
import { requestBody } from "./request.ts";
import type { ChatRequest } from "./types.ts";

export interface ChatModel {
  /**
   * One answer, whole or not at all: nothing of a failed attempt is returned. Throws a ModelError after the last
   * attempt, or the signal's reason as soon as it is aborted. `onArrival` hears of the answer so far, of each attempt from its beginning.
   */
  complete(request: ChatRequest, signal: AbortSignal, onArrival?: (arrival: Arrival) => void): Promise<Completion>;
}

export interface ChatModelOptions {
  /** Of any server that speaks OpenAI's chat completions, `https://openrouter.ai/api/v1` for one. */
  readonly baseUrl: string;
  /** Empty for servers that ask for none. */
  readonly apiKey: string;
  readonly clock: Clock;
  readonly log: Log;
  /** Attempts in all. */
  readonly attempts?: number;
  /** Silence after which an attempt is given up, in milliseconds. Node itself gives up after 300,000. */
  readonly idleTimeoutMs?: number;
  /** An answer that is not whole after this is given up for good, however much of it still comes. */
  readonly answerMs?: number;
  /** Spreads the retries of many turns: from 0 to 1. */
  readonly random?: () => number;
  /** Hears of each attempt that another follows, with the status it was answered with, if it was answered. */
  readonly onRetry?: (model: string, status: number | undefined) => void;
  /** Hears of an option that a model has refused; it is asked without it. */
  readonly onRefused?: (request: ChatRequest, option: OptionName, words: string) => void;
}

/** Longer than this no turn waits for a provider, whatever it asks for. */
const longestWaitMs = 60_000;
const wordsMax = 300;
/** A stream has some hundred bytes for each token: this is more than any model writes at once. */
const streamBytes = 64_000_000;

const remedies = {
  unavailable: "",
  refused: "",
  "out of money": " – add credit there, or configure another model",
  misconfigured: " – check baseUrl, name and key of the model in the configuration",
};

const randomFraction = () => Number.parseInt(secret(4), 16) / 2 ** 32;

/** 1, 2, 4, 8 … s, each shortened by up to a half. */
const backoffMs = (attempt: number, random: () => number): number => 1000 * 2 ** (attempt - 1) * (1 - random() / 2);

export const createChatModel = (options: ChatModelOptions): ChatModel => {
  const { baseUrl, apiKey, clock, log, attempts = 5, idleTimeoutMs = 120_000, answerMs = 600_000 } = options;
  const { random = randomFraction, onRetry = () => {}, onRefused = () => {} } = options;
  const { host, hostname } = new URL(baseUrl);
  const client = new OpenAI({
    baseURL: baseUrl,
    apiKey: apiKey || "none",
    // Without these lines the library takes the values from the environment, and sends them to whatever server this is.
    adminAPIKey: null,
    organization: null,
    project: null,
    maxRetries: 0,
    fetch: (url, init) => fetchWithin(url as string | URL, init ?? {}, { ms: answerMs, bytes: streamBytes }),
    logLevel: "off",
  });

  const quote = (words: string) => {
    const safe = (apiKey === "" ? words : words.replaceAll(apiKey, "[key]")).replace(/\s+/g, " ").trim();
    return safe.length > wordsMax ? `${safe.slice(0, wordsMax)}…` : safe;
  };

  const report = (model: string, failure: Failure, attempt: number): string => {
    const { status, afterMs = 0, kind } = failure;
    const happened = status === undefined ? "failed" : `answered ${status}`;
    const asked =
      afterMs > longestWaitMs ? ` and asked to wait ${Math.ceil(afterMs / 1000)} s, longer than a turn can` : "";
    return `The model ${model} at ${host} ${happened} (attempt ${attempt})${asked}: ${quote(failure.words)}${remedies[kind]}`;
  };

  /** Models that have refused images: they are sent none until the next start. */
  const blind = new Set<string>();

  const refused = new RefusedOptions();

  const complete: ChatModel["complete"] = async (asked, signal, onArrival = () => {}) => {
    let request = refused.without(asked);
    let isShowing =
      !blind.has(request.model) &&
      request.messages.some((message) => message.role === "user" && (message.images ?? []).length > 0);
    let waitMs = 0;
    for (let attempt = 1; ; attempt += 1) {
      try {
        if (waitMs > 0) await clock.sleep(waitMs, signal);
        const body = requestBody(request, hostname, { isBlind: !isShowing });
        return await attemptOnce(body, { client, clock, idleTimeoutMs, onArrival }, signal);
      } catch (error) {
        signal.throwIfAborted();
        const failure = diagnose(error, clock.now());
        if (failure === undefined) throw error;
        const message = report(request.model, failure, attempt);
        const refusal = isShowing ? refusalOfImages(failure) : undefined;
        if (refusal !== undefined) {
          log.warn({ model: request.model, host }, `${message} – asked again without images`);
          if (refusal === "never") blind.add(request.model);
          isShowing = false;
          onRetry(request.model, failure.status);
          continue;
        }
        const option = findRefusedOption(request, failure);
        if (option !== undefined) {
          log.warn({ model: request.model, host, option }, `${message} – asked again without ${option}`);
          refused.add(request, option);
          onRefused(request, option, quote(failure.words));
          request = refused.without(request);
          onRetry(request.model, failure.status);
          continue;
        }
        waitMs = failure.afterMs ?? backoffMs(attempt, random);
        if (!failure.mayRetry || attempt >= attempts || waitMs > longestWaitMs) throw new ModelError(message, failure);
        log.warn({ model: request.model, host, status: failure.status, attempt, waitMs }, message);
        onRetry(request.model, failure.status);
      }
    }
  };
  return { complete };
};
