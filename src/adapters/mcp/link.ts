import type { Client, JsonSchemaValidator, Progress } from "@modelcontextprotocol/client";
import { callAfter } from "../../base/lib/clock.ts";
import type { Limits } from "../../base/lib/outside.ts";
import type { ListedTool } from "./definition.ts";
import { type ServerFailure, serverFailureOf } from "./failure.ts";
import { type LineStream, LineTransport } from "./line-transport.ts";

/** Part of a result, as it came. */
export type ResultPart = Readonly<Record<string, unknown>> & { readonly type: string };

/** Answer to the call of a tool. All of it is the server's text. */
export interface ServerAnswer {
  /** True if the server says that it failed. */
  readonly isError: boolean;
  readonly parts: readonly ResultPart[];
  readonly structured: unknown;
}

/** Sends one request, within limits of its answer, and follows no redirect: `WayOut.exchange`. */
export type SendRequest = (url: string | URL, init: RequestInit, limits: Limits) => Promise<Response>;

/** Way to a server: over HTTP, or by the lines of a program. */
type ServerDoor =
  | {
      readonly url: string;
      readonly headers: Readonly<Record<string, string>>;
      readonly exchange: SendRequest;
      readonly start?: never;
    }
  | { readonly start: () => Promise<LineStream>; readonly url?: never };

interface LinkParts {
  readonly door: ServerDoor;
  /** The server says that its tools are others now. */
  readonly onChanged: () => void;
}

/** A call, with its limits. */
export interface ServerCall {
  /** Name by which the server knows the tool. */
  readonly tool: string;
  readonly input: Readonly<Record<string, unknown>>;
  /** Longest time without a sign of progress; with such signs it may take ten times as long. */
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
  /** Hears how far it is, such as "2 of 3", and what the server says about it. */
  readonly onProgress?: ((amount: string, words: string | undefined) => void) | undefined;
}

/** Something that a server lets one read. */
export interface ServerResource {
  readonly uri: string;
  readonly name: string;
}

const openMs = 10_000;
/** A program may have to be fetched first. */
const startMs = 60_000;
const listMs = 20_000;
const pagesMost = 16;
const listBytes = 4_000_000;
/** Ten megabytes of a picture, as text, with what stands around it. */
const callBytes = 16_000_000;
/** A request of the server's that stays open is ended and asked anew by then. */
const streamMs = 3_600_000;
/** Behind the limit of a call itself, which says more. */
const graceMs = 5_000;
const patience = 10;
/** Pauses before a stream is asked anew; the server proposes one. */
const pauses = { least: 1_000, most: 60_000 };

/** Takes every value for valid: patterns of the server would be run, and one may never end. */
const noValidation = {
  getValidator:
    <Value>(): JsonSchemaValidator<Value> =>
    (data) => ({ valid: true, data: data as Value, errorMessage: undefined }),
};

/** A connection, as long as it is good, and the number of those who wait for an answer on it. */
interface Connection {
  readonly client: Promise<Client>;
  waiting: number;
}

/**
 * The connection to one server of tools. It is opened by whoever needs it, and again after it was lost.
 * Everything rejects with a `ServerFailure`, or with the signal's reason.
 */
export class ServerLink {
  readonly #parts: LinkParts;
  #connection: Connection | undefined;
  readonly #closed = new AbortController();
  #callMs = openMs;

  constructor(parts: LinkParts) {
    this.#parts = parts;
  }

  /** True if there is a connection, or somebody opens one. */
  get isOpen(): boolean {
    return this.#connection !== undefined;
  }

  /** All tools that the server has. */
  list(): Promise<readonly ListedTool[]> {
    return this.#with(false, async (client) => {
      if (!client.getServerCapabilities()?.tools) return [];
      const { tools } = await client.listTools(undefined, { ...this.#short, cacheMode: "refresh" });
      return tools;
    });
  }

  resources(): Promise<readonly ServerResource[]> {
    return this.#with(false, async (client) => {
      if (!client.getServerCapabilities()?.resources) return [];
      return (await client.listResources(undefined, { ...this.#short, cacheMode: "refresh" })).resources;
    });
  }

  /** Reads a resource, in parts as those of an answer. */
  read(uri: string): Promise<readonly ResultPart[]> {
    return this.#with(false, async (client) => {
      const { contents } = await client.readResource({ uri }, { ...this.#short, cacheMode: "bypass" });
      return contents.map((resource) => ({ type: "resource", resource }));
    });
  }

  async call({ tool, input, timeoutMs, signal, onProgress }: ServerCall): Promise<ServerAnswer> {
    const maxTotalTimeout = timeoutMs * patience;
    this.#callMs = Math.max(this.#callMs, maxTotalTimeout);
    const limits = { timeout: timeoutMs, resetTimeoutOnProgress: true, maxTotalTimeout, signal };
    const { ProtocolError } = await import("@modelcontextprotocol/client");
    try {
      return await this.#with(true, async (client) => {
        signal.throwIfAborted();
        const asked = { name: tool, arguments: { ...input } };
        const onprogress = (at: Progress) => onProgress?.(amountOf(at), at.message);
        const answer = await client.callTool(asked, { ...limits, onprogress }).catch((thrown: unknown) => {
          // A refusal that the protocol knows is an answer, in the words of the server.
          if (!(thrown instanceof ProtocolError)) throw thrown;
          return { isError: true, content: [{ type: "text", text: thrown.message }], structuredContent: undefined };
        });
        const { isError, content, structuredContent: structured } = answer;
        return { isError: isError === true, parts: content as readonly object[] as readonly ResultPart[], structured };
      });
    } catch (error) {
      signal.throwIfAborted();
      throw error;
    }
  }

  /** Ends the connection for good. */
  async close(): Promise<void> {
    this.#closed.abort();
    const connection = this.#connection;
    this.#connection = undefined;
    await end(connection);
  }

  async #with<Result>(isCall: boolean, ask: (client: Client) => Promise<Result>): Promise<Result> {
    this.#connection ??= this.#begin();
    const connection = this.#connection;
    connection.waiting += 1;
    let failure: ServerFailure | undefined;
    try {
      const client = await connection.client.catch((thrown: unknown) => {
        throw serverFailureOf(thrown, false);
      });
      return await ask(client);
    } catch (thrown) {
      failure = serverFailureOf(thrown, isCall);
      throw failure;
    } finally {
      connection.waiting -= 1;
      const isGood = failure === undefined || failure.isAlive;
      if (!isGood) this.#leave(connection);
      // The last who waits on a connection that is left ends it.
      if (this.#connection !== connection && connection.waiting === 0) void end(connection);
    }
  }

  get #short(): { readonly timeout: number; readonly signal: AbortSignal } {
    return { timeout: listMs, signal: this.#closed.signal };
  }

  #begin(): Connection {
    const connection = { client: this.#open(() => this.#leave(connection)), waiting: 0 };
    return connection;
  }

  #leave(connection: Connection): void {
    if (this.#connection === connection) this.#connection = undefined;
  }

  /** @param onClosed called when the server has gone */
  async #open(onClosed: () => void): Promise<Client> {
    // Loaded with the first server: without servers nobody needs it.
    const library = await import("@modelcontextprotocol/client");
    const { door, onChanged } = this.#parts;
    const client = new library.Client(
      { name: "clevernet", version: "1" },
      {
        capabilities: {},
        versionNegotiation: { mode: door.start ? "legacy" : "auto" },
        inputRequired: { autoFulfill: false },
        jsonSchemaValidator: noValidation,
        listMaxPages: pagesMost,
        listChanged: { tools: { autoRefresh: false, debounceMs: 500, onChanged: () => onChanged() } },
      },
    );
    client.onerror = () => {};
    client.onclose = onClosed;
    const transport = door.start
      ? new LineTransport(await door.start(), library.deserializeMessage)
      : new library.StreamableHTTPClientTransport(new URL(door.url), {
          fetch: (to, init) => this.#fetch(door.exchange, to, init),
          requestInit: { headers: { ...door.headers } },
          reconnectionScheduler: (reconnect, delay) =>
            callAfter(Math.min(Math.max(delay, pauses.least), pauses.most), reconnect),
        });
    const timeout = door.start ? startMs : openMs;
    await client.connect(transport, { timeout, signal: this.#closed.signal }).catch(async (error: unknown) => {
      await transport.close();
      throw error;
    });
    return client;
  }

  #fetch(exchange: SendRequest, to: string | URL, init: RequestInit = {}): Promise<Response> {
    const asks = (method: string) => typeof init.body === "string" && init.body.includes(`"method":"${method}"`);
    const isCall = asks("tools/call");
    const isStream = init.method === "GET" || (!isCall && asks("subscriptions/listen"));
    const ms = isStream ? streamMs : isCall ? this.#callMs + graceMs : listMs;
    return exchange(to, init, { ms, bytes: isCall ? callBytes : listBytes });
  }
}

const amountOf = ({ progress, total }: Progress): string =>
  total === undefined ? `${progress}` : `${progress} of ${total}`;

const end = async (connection: Connection | undefined): Promise<void> => {
  const client = await connection?.client.catch(() => undefined);
  await client?.close().catch(() => {});
};
