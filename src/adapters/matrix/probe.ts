import http from "node:http";
import { text } from "node:stream/consumers";
import { secret } from "../../base/lib/ids.ts";
import { isObject } from "../../base/lib/json.ts";
import { fetchWithin, networkReason } from "../../base/lib/outside.ts";
import { toStorable } from "../../base/lib/storable.ts";

/** Answer of a homeserver to one request; `status` 0: it gave none, and `error` says why. */
export interface ProbeAnswer {
  readonly status: number;
  readonly errcode: string;
  readonly error: string;
  readonly body: Readonly<Record<string, unknown>>;
  /** Its clock, to the second. */
  readonly date: Date | undefined;
}

const limits = { ms: 10_000, bytes: 1_000_000 };
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

  versions(): Promise<ProbeAnswer> {
    return this.#ask("GET", "/_matrix/client/versions", false);
  }

  /** The server's own name; undefined where it does not say (it says so on listeners for federation). */
  async serverName(): Promise<string | undefined> {
    const { body } = await this.#ask("GET", "/_matrix/key/v2/server", false);
    return typeof body.server_name === "string" ? body.server_name : undefined;
  }

  /** Asks whose token ours is; with `userId`, also if we may speak as that user. */
  whoami(userId?: string): Promise<ProbeAnswer> {
    const query = userId === undefined ? "" : `?user_id=${enc(userId)}`;
    return this.#ask("GET", `/_matrix/client/v3/account/whoami${query}`);
  }

  /** Asks if a stranger could register the localpart: `M_EXCLUSIVE` where it is ours alone. */
  available(localpart: string): Promise<ProbeAnswer> {
    return this.#ask("GET", `/_matrix/client/v3/register/available?username=${enc(localpart)}`, false);
  }

  /** Makes the homeserver ping the application service with this id, and tells what it met there. */
  ping(applicationServiceId: string, id: string): Promise<ProbeAnswer> {
    const path = `/_matrix/client/v1/appservice/${enc(applicationServiceId)}/ping`;
    return this.#ask("POST", path, true, { transaction_id: id });
  }

  /** Keys of the users' devices, as people are given them. */
  keys(userIds: readonly string[]): Promise<ProbeAnswer> {
    const content = { device_keys: Object.fromEntries(userIds.map((userId) => [userId, []])) };
    return this.#ask("POST", "/_matrix/client/v3/keys/query", true, content);
  }

  async #ask(method: "GET" | "POST", path: string, hasToken = true, content = {}): Promise<ProbeAnswer> {
    try {
      const headers = hasToken && this.#token !== undefined ? { authorization: `Bearer ${this.#token}` } : {};
      const init = { method, headers, ...(method === "POST" && { body: JSON.stringify(content) }) };
      const response = await fetchWithin(this.#url + path, init, limits);
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
      return { status: 0, errcode: "", error: networkReason(thrown).message, body: {}, date: undefined };
    }
  }
}

/** By this the ids of pings begin that `check` asks for: it may have no database to write them down. */
const checkPrefix = "check-";
export const newPingOfCheck = (): string => `${checkPrefix}${secret(16)}`;
export const isPingOfCheck = (id: string | undefined): boolean => id?.startsWith(checkPrefix) ?? false;

/** The id in a ping of the homeserver; undefined where it leaves that out. */
export const pingId = (body: string): string | undefined => {
  try {
    const ping: unknown = JSON.parse(body);
    const id = isObject(ping) ? ping.transaction_id : undefined;
    return typeof id === "string" ? toStorable(id.slice(0, 200)) : undefined;
  } catch {
    return undefined;
  }
};

/** Stands in for a bridge that does not run: answers pings on its port, and nothing else. */
export interface PingListener {
  /** Tells what has come so far: not the ping with this id, that ping with our token, or any with another token. */
  heard(id: string): "nothing" | "our token" | "another token";
  /** True if a ping came that another bridge with our registration has asked for. */
  hasHeardOthers(id: string): boolean;
  close(): Promise<void>;
}

/** @throws the system's error, such as EADDRINUSE */
export const listenForPing = (host: string, port: number, token: string): Promise<PingListener> => {
  const ids: (string | undefined)[] = [];
  let isRefused = false;
  const server = http.createServer(async (request, response) => {
    const isPing = request.method === "POST" && request.url?.startsWith("/_matrix/app/v1/ping");
    const agrees = request.headers.authorization === `Bearer ${token}`;
    const body = isPing && agrees ? await text(request).catch(() => "") : "";
    if (isPing && agrees) ids.push(pingId(body));
    else if (isPing) isRefused = true;
    response.writeHead(isPing ? (agrees ? 200 : 403) : 503, { "content-type": "application/json" }).end("{}");
  });
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, host, () =>
      resolve({
        // A homeserver that leaves out the id has passed on the one that it was asked for.
        heard: (id) =>
          ids.includes(id) || ids.includes(undefined) ? "our token" : isRefused ? "another token" : "nothing",
        hasHeardOthers: (id) => ids.some((other) => other !== undefined && other !== id && !isPingOfCheck(other)),
        close: () =>
          new Promise((closed) => {
            server.close(() => closed());
            server.closeAllConnections();
          }),
      }),
    );
  });
};
