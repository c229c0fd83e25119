import { once } from "node:events";
import { createServer, type IncomingMessage, request, type ServerResponse } from "node:http";
import { buffer } from "node:stream/consumers";
import { pipeline } from "node:stream/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { Listener, reset } from "./listener.ts";
import { eventually } from "./poll.ts";

/** The head of a request, as the proxy got it. */
export interface RequestHead {
  readonly method: string;
  /** With its query, as the client wrote it. */
  readonly path: string;
  readonly headers: IncomingMessage["headers"];
}

type Condition = (head: RequestHead) => boolean;

/** A failure that strikes certain requests, until it is lifted. */
export interface Fault {
  /** The requests that it struck. */
  readonly struck: readonly RequestHead[];
  /** The first of them; where an answer is held or cut, after the target has given it. */
  reached(within?: number): Promise<RequestHead>;
  /** Ends the fault. What it holds goes on, unless its client is gone. */
  lift(): void;
}

interface FaultOptions {
  /** Default: every request. */
  readonly when?: Condition;
  /** How many requests it strikes. Default: all, until it is lifted. */
  readonly times?: number;
}

interface Exchange {
  readonly incoming: IncomingMessage;
  readonly response: ServerResponse;
  readonly lifted: Promise<void>;
}

/** Acts on an exchange; true if the exchange goes on. */
type Effect = (exchange: Exchange) => boolean | Promise<boolean>;

interface ActiveFault {
  readonly moment: "request" | "answer" | "end";
  readonly effect: Effect;
  readonly when: Condition;
  readonly struck: RequestHead[];
  readonly lifted: PromiseWithResolvers<void>;
  timesLeft: number;
}

const hold: Effect = async ({ lifted }) => {
  await lifted;
  return true;
};

const cut: Effect = ({ incoming }) => {
  reset(incoming.socket);
  return false;
};

/** Stands before an HTTP server: Synapse or a model. A request meets the first fault whose condition it fulfils. */
export class HttpProxy {
  /** All that came, oldest first. */
  readonly requests: RequestHead[] = [];
  readonly #target: URL;
  readonly #listener: Listener;
  readonly #faults = new Set<ActiveFault>();

  private constructor(target: string) {
    this.#target = new URL(target);
    const server = createServer((incoming, response) => {
      // The target is gone, or the client: the other one sees the same.
      this.#serve(incoming, response).catch(() => reset(incoming.socket));
    });
    this.#listener = new Listener(server);
  }

  static async start(target: string, { port = 0 } = {}): Promise<HttpProxy> {
    const proxy = new HttpProxy(target);
    await proxy.#listener.accept(port);
    return proxy;
  }

  /** The target's URL with the proxy's address in it. */
  get url(): string {
    const url = new URL(this.#target);
    url.host = `127.0.0.1:${this.#listener.port}`;
    return url.href.replace(/\/$/, "");
  }

  /** Requests wait before the target. */
  hold(options?: FaultOptions): Fault {
    return this.#add("request", hold, options);
  }

  /** The target carries requests out, and its answers wait. */
  holdAnswer(options?: FaultOptions): Fault {
    return this.#add("answer", hold, options);
  }

  /** Connections are reset before the target hears of the request. */
  cutRequest(options?: FaultOptions): Fault {
    return this.#add("request", cut, options);
  }

  /** The target carries requests out, and connections are reset in place of its answers. */
  cutAnswer(options?: FaultOptions): Fault {
    return this.#add("answer", cut, options);
  }

  /** Requests reach the target later. */
  delay(ms: number, options?: FaultOptions): Fault {
    return this.#add("request", () => sleep(ms, true), options);
  }

  /** The proxy answers with this JSON in the target's place; `isAfter`: the target has carried the request out. */
  respond(
    answer: { status: number; headers?: Readonly<Record<string, string>>; body?: unknown; isAfter?: boolean },
    options?: FaultOptions,
  ): Fault {
    const { status, headers = {}, body = {}, isAfter = false } = answer;
    const effect: Effect = ({ incoming, response }) => {
      incoming.resume();
      response.writeHead(status, { "content-type": "application/json", ...headers }).end(JSON.stringify(body));
      return false;
    };
    return this.#add(isAfter ? "answer" : "request", effect, options);
  }

  /** The target's answers never end: behind each this text comes again and again. */
  goOn(text: string, options?: FaultOptions): Fault {
    const effect: Effect = async ({ response, lifted }) => {
      const going = setInterval(() => response.write(text), 20);
      await Promise.race([lifted, once(response, "close")]).finally(() => clearInterval(going));
      return true;
    };
    return this.#add("end", effect, options);
  }

  /** Resets every connection that is open now. */
  cut(): void {
    this.#listener.cut();
  }

  /** From now on there is nobody here: connections are reset, new ones refused, until `accept`. */
  refuse(): Promise<void> {
    return this.#listener.refuse();
  }

  accept(): Promise<void> {
    return this.#listener.accept();
  }

  async stop(): Promise<void> {
    await this.#listener.refuse();
    for (const { lifted } of this.#faults) lifted.resolve();
  }

  #add(moment: ActiveFault["moment"], effect: Effect, options: FaultOptions = {}): Fault {
    const { when = () => true, times = Number.POSITIVE_INFINITY } = options;
    const lifted = Promise.withResolvers<void>();
    const fault: ActiveFault = { moment, effect, when, struck: [], lifted, timesLeft: times };
    this.#faults.add(fault);
    return {
      struck: fault.struck,
      reached: async (within = 15_000) => {
        const look = () => fault.struck[0] ?? Promise.reject(new Error(`the proxy saw ${this.#seen()}`));
        return eventually(look, { within, what: `a request with ${when}` });
      },
      lift: () => {
        this.#faults.delete(fault);
        lifted.resolve();
      },
    };
  }

  #seen(): string {
    return this.requests.map(({ method, path }) => `\n  ${method} ${path}`).join("") || "nothing";
  }

  async #serve(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const head = { method: incoming.method ?? "", path: incoming.url ?? "", headers: incoming.headers };
    this.requests.push(head);
    const fault = [...this.#faults].find(({ when, timesLeft }) => timesLeft > 0 && when(head));
    if (fault) fault.timesLeft -= 1;
    const strike = (moment: ActiveFault["moment"]): boolean | Promise<boolean> => {
      if (fault?.moment !== moment) return true;
      fault.struck.push(head);
      return fault.effect({ incoming, response, lifted: fault.lifted.promise });
    };
    if (!(await strike("request")) || incoming.socket.destroyed) return;
    // Where the answer is held or cut the target has to carry the request out, even if the client does not wait for it.
    const isWholeAnswer = fault?.moment === "answer";
    const answer = await this.#forward(incoming, response, isWholeAnswer);
    const whole = isWholeAnswer ? await buffer(answer) : undefined;
    if (!(await strike("answer")) || incoming.socket.destroyed) return;
    const { connection: _, "keep-alive": __, "transfer-encoding": ___, ...headers } = answer.headers;
    const goesOn = fault?.moment === "end";
    if (goesOn) delete headers["content-length"];
    response.writeHead(answer.statusCode ?? 502, headers);
    if (whole) response.end(whole);
    else await pipeline(answer, response, { end: !goesOn });
    if (!goesOn) return;
    await strike("end");
    response.end();
  }

  async #forward(incoming: IncomingMessage, response: ServerResponse, goesToTheEnd: boolean): Promise<IncomingMessage> {
    const { hostname, port } = this.#target;
    const { connection: _, ...headers } = incoming.headers;
    // One connection each: one that was kept may be dead after the target came back.
    const upstream = request({ hostname, port, method: incoming.method, path: incoming.url, headers, agent: false });
    if (!goesToTheEnd) response.on("close", () => upstream.destroy());
    const answered = once(upstream, "response");
    upstream.on("error", () => {});
    incoming.on("error", () => upstream.destroy()).pipe(upstream);
    const [answer] = (await answered) as [IncomingMessage];
    return answer;
  }
}
