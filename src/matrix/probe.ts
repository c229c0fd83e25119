import http from "node:http";
import { messageOf } from "../lib/errors.ts";
import { isObject } from "../lib/json.ts";

/** What a homeserver said to one request; `status` 0: it did not, and `error` says why. */
export interface Answer {
  readonly status: number;
  readonly errcode: string;
  readonly error: string;
  readonly body: Readonly<Record<string, unknown>>;
  /** Its clock, to the second. */
  readonly date: Date | undefined;
}

const patienceMs = 10_000;
const enc = encodeURIComponent;

/** Asks a homeserver single questions, once each and without the bridge: for checks, which report what they hear. */
export class HomeserverProbe {
  readonly #url: string;
  readonly #token: string | undefined;

  /** @param token the application service's; only `versions` and `serverName` do without */
  constructor(url: string, token?: string) {
    this.#url = url.replace(/\/+$/, "");
    this.#token = token;
  }

  versions(): Promise<Answer> {
    return this.#ask("GET", "/_matrix/client/versions", false);
  }

  /** The server's own name; undefined where it does not say (it says so on listeners for federation). */
  async serverName(): Promise<string | undefined> {
    const { body } = await this.#ask("GET", "/_matrix/key/v2/server", false);
    return typeof body.server_name === "string" ? body.server_name : undefined;
  }

  /** Whose token ours is; with `userId` whether we may speak as that user. */
  whoami(userId?: string): Promise<Answer> {
    const query = userId === undefined ? "" : `?user_id=${enc(userId)}`;
    return this.#ask("GET", `/_matrix/client/v3/account/whoami${query}`);
  }

  /** Whether a stranger could register the localpart: `M_EXCLUSIVE` where it is ours alone. */
  available(localpart: string): Promise<Answer> {
    return this.#ask("GET", `/_matrix/client/v3/register/available?username=${enc(localpart)}`, false);
  }

  /** Makes the homeserver ping the application service, and tells what it met there. */
  ping(applicationServiceId: string): Promise<Answer> {
    return this.#ask("POST", `/_matrix/client/v1/appservice/${enc(applicationServiceId)}/ping`);
  }

  async #ask(method: "GET" | "POST", path: string, withToken = true): Promise<Answer> {
    try {
      const response = await fetch(this.#url + path, {
        method,
        headers: withToken && this.#token !== undefined ? { authorization: `Bearer ${this.#token}` } : {},
        ...(method === "POST" && { body: "{}" }),
        signal: AbortSignal.timeout(patienceMs),
      });
      const json: unknown = await response.json().catch(() => undefined);
      const body = isObject(json) ? json : {};
      const date = new Date(response.headers.get("date") ?? Number.NaN);
      return {
        status: response.status,
        errcode: String(body.errcode ?? ""),
        error: String(body.error ?? ""),
        body,
        date: Number.isNaN(date.getTime()) ? undefined : date,
      };
    } catch (thrown) {
      const cause = thrown instanceof Error && thrown.cause instanceof Error ? thrown.cause : thrown;
      const code = cause instanceof Error && "code" in cause ? String(cause.code) : "no answer";
      return { status: 0, errcode: "", error: messageOf(cause) || code, body: {}, date: undefined };
    }
  }
}

/** Stands in for a bridge that does not run: answers pings on its port, and nothing else. */
export interface PingListener {
  /** What came so far: no ping, one with our token, or one with another. */
  heard(): "nothing" | "our token" | "another token";
  close(): Promise<void>;
}

/** @throws the system's error, such as EADDRINUSE */
export const listenForPing = (host: string, port: number, token: string): Promise<PingListener> => {
  let heard: ReturnType<PingListener["heard"]> = "nothing";
  const server = http.createServer((request, response) => {
    const isPing = request.method === "POST" && request.url?.startsWith("/_matrix/app/v1/ping");
    const agrees = request.headers.authorization === `Bearer ${token}`;
    if (isPing) heard = agrees ? "our token" : "another token";
    response.writeHead(isPing ? (agrees ? 200 : 403) : 503, { "content-type": "application/json" }).end("{}");
  });
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, host, () =>
      resolve({
        heard: () => heard,
        close: () =>
          new Promise((closed) => {
            server.close(() => closed());
            server.closeAllConnections();
          }),
      }),
    );
  });
};
