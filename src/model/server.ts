import { Agent, type IncomingMessage, request as overHttp, type RequestOptions } from "node:http";
import { request as overHttps, Agent as SecureAgent } from "node:https";
import { text } from "node:stream/consumers";
import { isObject } from "../lib/json.ts";

/** How long a connection is kept for the next call: shorter than the minute or more that most servers keep theirs. */
const idleMs = 50_000;

/** The server could not be reached, or the connection to it broke. The cause says why. */
export class ConnectionError extends Error {
  override readonly name = "ConnectionError";

  constructor(cause: unknown) {
    super("no connection to the model's server", { cause });
  }
}

/** The server said no: by its status, or in the middle of a stream, where the status is gone. */
export class ServerError extends Error {
  override readonly name = "ServerError";
  readonly status: number | undefined;
  /** The protocol's `error`, or whatever else the server has answered. */
  readonly details: unknown;
  /** The header `Retry-After`. */
  readonly retryAfter: string | undefined;

  constructor(status: number | undefined, body: unknown, response: IncomingMessage) {
    const details = isObject(body) && body.error !== undefined ? body.error : body;
    super(wordsOf(details));
    this.status = status;
    this.details = details;
    this.retryAfter = response.headers["retry-after"];
  }
}

const wordsOf = (details: unknown): string => {
  const words = isObject(details) && details.message ? details.message : details;
  return (typeof words === "string" ? words : JSON.stringify(words)) || "no words";
};

/** Where requests are sent, over connections that are kept. */
export class ModelServer {
  readonly #url: URL;
  readonly #options: RequestOptions;
  readonly #request: typeof overHttp;

  /** Without an `apiKey`, none is sent. */
  constructor(url: string, apiKey: string) {
    const secure = url.startsWith("https:");
    const connections = { keepAlive: true, timeout: idleMs };
    this.#url = new URL(url);
    this.#request = secure ? overHttps : overHttp;
    this.#options = {
      method: "POST",
      agent: secure ? new SecureAgent(connections) : new Agent(connections),
      headers: {
        accept: "text/event-stream",
        "content-type": "application/json",
        "user-agent": "clevernet",
        ...(apiKey !== "" && { authorization: `Bearer ${apiKey}` }),
      },
    };
  }

  /** Throws a ServerError, a ConnectionError, or an AbortError. */
  async post(json: string, signal: AbortSignal): Promise<IncomingMessage> {
    const response = await this.#send(json, signal);
    const { statusCode = 0 } = response;
    if (statusCode >= 200 && statusCode < 300) return response;
    const body = await text(response).catch((error: unknown) => {
      throw new ConnectionError(error);
    });
    throw new ServerError(statusCode, parsed(body), response);
  }

  async #send(json: string, signal: AbortSignal): Promise<IncomingMessage> {
    const request = this.#request(this.#url, { ...this.#options, signal });
    const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
    request.once("response", resolve).on("error", reject).end(json);
    try {
      return await promise;
    } catch (error) {
      // A connection that the server has closed while nobody used it: it has not seen this request.
      if (request.reusedSocket && !signal.aborted && isClosed(error)) return this.#send(json, signal);
      throw new ConnectionError(error);
    }
  }
}

const isClosed = (error: unknown): boolean =>
  error instanceof Error && "code" in error && (error.code === "ECONNRESET" || error.code === "EPIPE");

const parsed = (body: string): unknown => {
  try {
    return JSON.parse(body);
  } catch {
    return body;
  }
};
