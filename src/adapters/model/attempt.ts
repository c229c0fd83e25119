import type OpenAI from "openai";
import { Stream } from "openai/streaming";
import { type Clock, callAfter } from "../../base/lib/clock.ts";
import { OverLimit } from "../../base/lib/outside.ts";
import { type Arrival, type Completion, CompletionBuilder } from "./completion.ts";
import { StreamError } from "./failure.ts";
import { promptText } from "./images.ts";

interface AttemptOptions {
  readonly client: OpenAI;
  readonly clock: Clock;
  readonly idleTimeoutMs: number;
  /** Told of the answer so far whenever more of it has come. */
  readonly onArrival: (arrival: Arrival) => void;
}

/** Longest wait for the usage, which comes after the answer has finished. */
const usageMs = 2_000;
/** An event of a stream in which a whole answer stands. */
const eventBytesMost = 8_000_000;

/** A signal that aborts with a StreamError when `heard` was not called for `idleTimeoutMs`. */
const watchSilence = ({ clock, idleTimeoutMs }: Pick<AttemptOptions, "clock" | "idleTimeoutMs">) => {
  const silence = new AbortController();
  const done = new AbortController();
  let last = clock.monotonic();
  const watch = async () => {
    for (let left = idleTimeoutMs; left > 0; left = last + idleTimeoutMs - clock.monotonic()) {
      await clock.sleep(left, done.signal);
    }
    silence.abort(new StreamError(`no byte for ${idleTimeoutMs / 1000} s`));
  };
  watch().catch(() => undefined);
  return {
    signal: silence.signal,
    heard: () => {
      last = clock.monotonic();
    },
    stop: () => done.abort(),
  };
};

/** Hands the bytes through, telling `heard` of each chunk of them; the library keeps those of an event until its end. */
const listen = (heard: (bytes: Uint8Array) => void) => {
  let pending = 0;
  return new TransformStream<Uint8Array, Uint8Array>({
    transform(bytes, controller) {
      const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
      const end = Math.max(buffer.lastIndexOf("\n\n"), buffer.lastIndexOf("\n\r\n"));
      pending = end < 0 ? pending + bytes.byteLength : bytes.byteLength - end;
      if (pending > eventBytesMost) throw new OverLimit("size", `an event of more than ${eventBytesMost} bytes`);
      heard(bytes);
      controller.enqueue(bytes);
    },
  });
};

/**
 * Sends one request and reads its stream until the model has finished, and a moment longer for its usage. Silence is
 * measured in bytes, not in chunks: providers keep a connection alive with comments while the model waits its turn. A
 * stream that breaks off after the model had finished counts: what is missing is only its usage.
 */
export const attemptOnce = async (
  body: OpenAI.ChatCompletionCreateParamsStreaming,
  options: AttemptOptions,
  signal: AbortSignal,
): Promise<Completion> => {
  const silence = watchSilence(options);
  const builder = new CompletionBuilder();
  const enough = new AbortController();
  let forgetUsage: (() => void) | undefined;
  const throwIfInterrupted = () => {
    signal.throwIfAborted();
    if (!builder.isFinished) silence.signal.throwIfAborted();
  };
  try {
    const response = await options.client.chat.completions
      .create(body, { signal: AbortSignal.any([signal, silence.signal, enough.signal]) })
      .asResponse();
    const decoder = new TextDecoder();
    let beginning = "";
    const bytes = response.body?.pipeThrough(
      listen((bytes) => {
        silence.heard();
        if (beginning.length < 300) beginning += decoder.decode(bytes, { stream: true });
      }),
    );
    let isEmpty = true;
    const chunks = Stream.fromSSEResponse<unknown>(new Response(bytes), new AbortController(), options.client);
    for await (const chunk of chunks) {
      isEmpty = false;
      builder.add(chunk);
      options.onArrival(builder);
      if (builder.isFinished) forgetUsage ??= callAfter(usageMs, () => enough.abort());
    }
    throwIfInterrupted();
    if (isEmpty) throw new StreamError(`no event stream, but: ${beginning}`);
  } catch (error) {
    throwIfInterrupted();
    if (!builder.isFinished) throw error;
  } finally {
    silence.stop();
    forgetUsage?.();
    enough.abort();
  }
  return builder.build(() => promptText([body.messages, body.tools]));
};
