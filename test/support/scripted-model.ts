import type { IncomingHttpHeaders, ServerResponse } from "node:http";
import { type ChatBody, chunks, eventStream, refuse, serveOpenAi } from "../../src/edges/demo/openai-wire.ts";
import { type NewMessage, readView } from "../../src/edges/demo/rehearsal-view.ts";

/** One request as the server saw it. */
export interface ModelRequest {
  readonly body: ChatBody;
  readonly headers: IncomingHttpHeaders;
  /** The client went away before the answer was complete. */
  readonly wasAborted: boolean;
  /** Resolves when the answer is complete or the client gone. */
  readonly closed: Promise<void>;
}

/** One step of an answer; a string is text. A tool call is sent as a name and its arguments in pieces. */
export type Step =
  | string
  | { text: string }
  | { reasoning: string }
  | { call: string; arguments?: object | string; id?: string }
  | { finish: string }
  /** Token counts other than the usual ones; undefined: none are sent. */
  | { usage: object | undefined }
  /** The answer goes on when the promise resolves. */
  | { wait: Promise<unknown> }
  /** Nothing comes any more, and the connection stays open. */
  | { hangs: true }
  /** The connection is closed in the middle of the stream. */
  | { isCut: true }
  /** The connection is reset, as by a process that died. */
  | { resets: true }
  /** Bytes of the stream, as they are. */
  | { raw: string }
  /** Instead of an answer, before any other step. `body` replaces the usual JSON error. */
  | { status: number; error?: string; headers?: Record<string, string>; body?: string };

type Steps = Step | Iterable<Step> | AsyncIterable<Step>;
/** Answer of a rule: steps, or a function of the request that makes them. Generators may await anything. */
export type Reply = Steps | ((request: ModelRequest) => Steps | Promise<Steps>);
/**
 * Text or pattern to be found in what others have newly said in the conversation's room (in a request without a chat
 * interface: in its last message), or a test of the request.
 */
export type Matcher = string | RegExp | ((request: ModelRequest) => boolean);

interface Rule {
  readonly matches: (request: ModelRequest) => boolean;
  readonly reply: Reply;
  timesLeft: number;
}

/** All that is sent beside the system message. */
export const userText = ({ body }: ModelRequest): string =>
  body.messages
    .filter(({ role }) => role !== "system")
    .map(({ content }) => content)
    .join("\n\n");

/** New messages of others in the room of the conversation, oldest first. */
export const newMessages = (request: ModelRequest): readonly NewMessage[] =>
  readView(request.body.messages)?.newMessages ?? [];

/** The name under which a tool is offered in this request: with the agent's suffix. */
export const toolName = ({ body }: ModelRequest, tool: string): string => {
  const names = body.tools.map((offered) => offered.function.name);
  const name = names.find((offered) => offered === tool || offered.startsWith(`${tool}_`));
  if (name === undefined) throw new Error(`the request offers no ${tool}, but: ${names.join(", ") || "nothing"}`);
  return name;
};

/** A call of SendMessage: the agent says `content` in the room. */
export const say = (
  request: ModelRequest,
  roomId: string,
  content: string,
  options: { final?: boolean; threadId?: string; replyTo?: string } = {},
): Step => ({ call: toolName(request, "SendMessage"), arguments: { roomId, content, ...options } });

const matchesOf = (matcher: Matcher) => {
  if (typeof matcher === "function") return matcher;
  return (request: ModelRequest) => {
    const view = readView(request.body.messages);
    const said = view ? view.newMessages.map(({ body }) => body).join("\n") : userText(request);
    return typeof matcher === "string" ? said.includes(matcher) : matcher.test(said);
  };
};

const isMany = (steps: Steps): steps is Iterable<Step> | AsyncIterable<Step> =>
  typeof steps === "object" && (Symbol.iterator in steps || Symbol.asyncIterator in steps);

/** Writes the steps as a stream, in as few writes as there are waits. */
const play = async (
  steps: Iterable<Step> | AsyncIterable<Step>,
  { model, stream_options }: ChatBody,
  response: ServerResponse,
) => {
  let pending = "";
  let calls = 0;
  let finish: string | undefined;
  let usage: object | undefined = { prompt_tokens: 1000, completion_tokens: 10, total_tokens: 1010 };
  const flush = () => {
    if (!response.headersSent) response.writeHead(200, eventStream);
    if (pending !== "") response.write(pending);
    pending = "";
  };
  const delta = (part: Parameters<typeof chunks.delta>[1]) => {
    pending += chunks.delta(model, part);
  };
  for await (const item of steps) {
    const step = typeof item === "string" ? { text: item } : item;
    if ("text" in step) for (const piece of step.text.match(/\s*\S+|\s+/g) ?? []) delta({ content: piece });
    else if ("reasoning" in step) delta({ reasoning_content: step.reasoning });
    else if ("finish" in step) finish = step.finish;
    else if ("usage" in step) usage = step.usage;
    else if ("raw" in step) pending += step.raw;
    else if ("call" in step) {
      const index = calls++;
      const json = typeof step.arguments === "string" ? step.arguments : JSON.stringify(step.arguments ?? {});
      const id = step.id ?? `call_${index}`;
      delta({ tool_calls: [{ index, id, type: "function", function: { name: step.call, arguments: "" } }] });
      for (const piece of json.match(/[\s\S]{1,64}/g) ?? [])
        delta({ tool_calls: [{ index, function: { arguments: piece } }] });
    } else if ("status" in step) {
      if (step.body === undefined) return refuse(response, step.status, step.error ?? "scripted", step.headers);
      return void response.writeHead(step.status, step.headers).end(step.body);
    } else {
      flush();
      if ("wait" in step) await step.wait;
      if ("hangs" in step) return;
      if ("isCut" in step) return void response.destroy();
      if ("resets" in step) return void response.socket?.resetAndDestroy();
    }
  }
  pending += chunks.finish(model, finish ?? (calls > 0 ? "tool_calls" : "stop"));
  if (usage !== undefined && stream_options !== undefined) pending += chunks.usage(model, usage);
  pending += chunks.done;
  flush();
  response.end();
};

/**
 * An OpenAI-compatible server that answers by rules, for tests of whatever calls a model. The first rule that matches
 * and has not been used up answers; a request that none matches is refused, and makes `stop` throw.
 */
export class ScriptedModel {
  readonly requests: ModelRequest[] = [];
  readonly #rules: Rule[] = [];
  readonly #unmatched: ModelRequest[] = [];
  #everyReply: Reply | undefined;
  #waiting: { matches: (request: ModelRequest) => boolean; found: (request: ModelRequest) => void }[] = [];
  #server: Awaited<ReturnType<typeof serveOpenAi>> | undefined;

  /** `port`: a fixed one, so that a client that starts again finds the server. */
  async start(port = 0): Promise<this> {
    this.#server = await serveOpenAi({ port, model: "scripted", answer: this.#answer.bind(this) });
    return this;
  }

  /** Base URL for clients. */
  get url(): string {
    if (!this.#server) throw new Error("the scripted model is not started");
    return this.#server.url;
  }

  /** Adds a rule behind those that exist; `times`: how often it answers before it is used up. */
  on(matcher: Matcher, reply: Reply, { times = Number.POSITIVE_INFINITY } = {}): this {
    this.#rules.push({ matches: matchesOf(matcher), reply, timesLeft: times });
    return this;
  }

  /** Answers what no rule matches. */
  onEvery(reply: Reply): this {
    this.#everyReply = reply;
    return this;
  }

  /** The first request, past or future, that matches. */
  async request(matcher: Matcher): Promise<ModelRequest> {
    const matches = matchesOf(matcher);
    const known = this.requests.find(matches);
    return known ?? new Promise((found) => this.#waiting.push({ matches, found }));
  }

  async stop(): Promise<void> {
    await this.#server?.stop();
    if (this.#unmatched.length === 0) return;
    const texts = this.#unmatched.map((request) => userText(request).slice(-500));
    throw new Error(`the scripted model got ${texts.length} requests that no rule matches:\n${texts.join("\n---\n")}`);
  }

  async #answer(body: ChatBody, response: ServerResponse, headers: IncomingHttpHeaders): Promise<void> {
    let wasAborted = false;
    const closed = new Promise<void>((resolve) => {
      response.on("close", () => {
        wasAborted = !response.writableFinished;
        resolve();
      });
    });
    const request: ModelRequest = {
      body,
      headers,
      closed,
      get wasAborted() {
        return wasAborted;
      },
    };
    this.#record(request);
    const rule = this.#rules.find(({ timesLeft, matches }) => timesLeft > 0 && matches(request));
    if (rule) rule.timesLeft -= 1;
    const reply = rule?.reply ?? this.#everyReply;
    if (reply === undefined) {
      this.#unmatched.push(request);
      return refuse(response, 400, "no rule of the scripted model matches");
    }
    const steps = typeof reply === "function" ? await reply(request) : reply;
    await play(isMany(steps) ? steps : [steps], body, response);
  }

  #record(request: ModelRequest): void {
    this.requests.push(request);
    const found = this.#waiting.filter(({ matches }) => matches(request));
    this.#waiting = this.#waiting.filter((waiting) => !found.includes(waiting));
    for (const waiting of found) waiting.found(request);
  }
}
