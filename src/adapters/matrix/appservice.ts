import { timingSafeEqual } from "node:crypto";
import http from "node:http";
import express, { type RequestHandler } from "express";
import { AppService, AppServiceRegistration, Bridge, Logger, MembershipCache } from "matrix-appservice-bridge";
import { afterIdling } from "../../base/lib/clock.ts";
import { messageOf, UserError } from "../../base/lib/errors.ts";
import type { RoomId, UserId } from "../../base/lib/ids.ts";
import type { Log } from "../../base/lib/log.ts";
import { MatrixClient } from "./client.ts";
import { pingId } from "./probe.ts";
import { limitLibraryRequests } from "./requests.ts";

/** Limit of a transaction: Synapse sends up to 100 events of 64 KB in one, and repeats a refused one for ever. */
const largestTransaction = "64mb";

/**
 * Longest time from the beginning of a connection to the end of a request's headers, and for the body of one that
 * shows no token; Node gives them minutes.
 */
const headersMs = 5_000;
const strangersBodyMs = 2_000;

export interface ApplicationServiceOptions {
  readonly homeserverUrl: string;
  readonly serverName: string;
  /** The registration as the homeserver has it. */
  readonly registration: { readonly id: string; readonly as_token: string; readonly hs_token: string } & Record<
    string,
    unknown
  >;
  readonly log: Log;
  /** Must have stored the events durably when it resolves; when it rejects the homeserver tries again. */
  readonly onTransaction: (events: readonly unknown[]) => Promise<void>;
  /** Takes a request of the homeserver that is no transaction at all. */
  readonly onMisfit: (raw: string, reason: string) => Promise<void>;
  /** Answers a ping of the homeserver, with the id that the asker chose. If it rejects, nobody was there. */
  readonly onPing: (id: string | undefined) => Promise<void>;
  readonly userExists: (userId: UserId) => Promise<boolean>;
  /** More routes of ours on the same port. */
  readonly mount: (app: express.Application) => void;
}

export interface ApplicationService {
  readonly client: MatrixClient;
  listen(host: string, port: number): Promise<void>;
  /** Stops taking transactions; requests in progress are finished. */
  close(): Promise<void>;
  /** Tells the bridge library facts for which it would otherwise ask the homeserver. */
  remember(roomId: RoomId, userId: UserId, membership: string): void;
}

/**
 * Runs the bridge library for registration of users, profiles and requests, with routes of our own in place of its
 * own.
 */
export async function createApplicationService(options: ApplicationServiceOptions): Promise<ApplicationService> {
  Logger.configure({ console: "off" });
  limitLibraryRequests();
  const memberships = new MembershipCache();
  const registration = AppServiceRegistration.fromObject(options.registration as never);
  if (!registration) throw new Error("the registration is not one");
  const bridge = new Bridge({
    homeserverUrl: options.homeserverUrl,
    domain: options.serverName,
    registration,
    disableStores: true,
    disableContext: true,
    suppressEcho: false,
    logRequestOutcome: false,
    eventValidation: undefined as never,
    membershipCache: memberships,
    intentOptions: {
      clients: { dontCheckPowerLevel: true, enablePresence: false },
      bot: { dontCheckPowerLevel: true, enablePresence: false },
    },
    controller: {
      onEvent: () => {},
    },
  });
  await bridge.initialise();
  const service = new DurableAppService(options);
  return {
    client: new MatrixClient(bridge, options.registration.id),
    listen: (host, port) => bridge.listen(port, host, 511, service),
    close: () => bridge.close(),
    remember: (roomId, userId, membership) => memberships.setMemberEntry(roomId, userId, membership as never, {}),
  };
}

class DurableAppService extends AppService {
  readonly #app = express();
  /** Requests that are not answered yet. */
  readonly #open = new Set<http.ServerResponse>();
  #server: http.Server | undefined;

  constructor(options: ApplicationServiceOptions) {
    super({ homeserverToken: options.registration.hs_token });
    const fromHomeserver = requireToken(options.registration.hs_token);
    const readText = express.text({ type: () => true, limit: largestTransaction });
    this.#app.disable("x-powered-by").set("etag", false);
    this.#app.put(
      "/_matrix/app/v1/transactions/:transactionId",
      fromHomeserver,
      readText,
      async (request, response) => {
        try {
          await takeTransaction(String(request.body), options);
          response.json({});
        } catch (error) {
          options.log.error({ err: error }, "a transaction could not be stored; the homeserver will send it again");
          response.status(500).json({ errcode: "M_UNKNOWN", error: "The transaction could not be stored" });
        }
      },
    );
    this.#app.post("/_matrix/app/v1/ping", fromHomeserver, readText, async (request, response) => {
      try {
        await options.onPing(pingId(String(request.body)));
        response.json({});
      } catch (error) {
        options.log.warn(`a ping was not taken: ${messageOf(error)}`);
        response.status(500).json({ errcode: "M_UNKNOWN", error: "The ping could not be written down" });
      }
    });
    options.mount(this.#app);
    this.#app.use("/_matrix", fromHomeserver);
    this.#app.get("/_matrix/app/v1/users/:userId", async (request, response) => {
      if (await options.userExists(request.params.userId as UserId)) response.json({});
      else response.status(404).json({ errcode: "M_NOT_FOUND", error: "There is no such agent" });
    });
  }

  override listen(port: number, host: string, backlog: number): Promise<void> {
    const server = http.createServer({ headersTimeout: headersMs, connectionsCheckingInterval: 1_000 }, this.#app);
    server.on("request", (request, response) => {
      this.#open.add(response);
      response.once("close", () => this.#open.delete(response));
      endLate(request, response);
    });
    server.keepAliveTimeout = 65_000;
    this.#server = server;
    return new Promise((resolve, reject) => {
      server.once("error", (error) => {
        const isTaken = "code" in error && error.code === "EADDRINUSE";
        reject(
          new UserError(
            isTaken
              ? `bridge.port: ${host}:${port} is used by another program. Stop it, or choose another port.`
              : `bridge.host: nobody can listen on ${host}:${port} here (${messageOf(error)}). Choose an address of this ` +
                  "machine, such as 127.0.0.1 or 0.0.0.0, and a port above 1023.",
          ),
        );
      });
      server.listen(port, host, backlog, resolve);
    });
  }

  override async close(): Promise<void> {
    const server = this.#server;
    if (!server) return;
    const closed = new Promise<void>((resolve) => {
      server.close(() => resolve());
    });
    await Promise.all(
      [...this.#open].map((response) => new Promise<void>((resolve) => response.once("close", resolve))),
    );
    // A client that keeps its connection open would delay our end.
    server.closeAllConnections();
    await closed;
  }
}

/** Ends the connection of a request that shows no token, if its body takes long. */
function endLate(request: http.IncomingMessage, response: http.ServerResponse): void {
  const forget = afterIdling(strangersBodyMs, () => {
    if (!request.complete && !trusted.has(request)) request.socket.destroy();
  });
  // Node goes on reading a body behind its answer.
  response.once("close", () => request.complete && forget());
}

async function takeTransaction(text: string, options: ApplicationServiceOptions): Promise<void> {
  let events: unknown;
  try {
    events = (JSON.parse(text) as { events?: unknown } | null)?.events;
  } catch (error) {
    return options.onMisfit(text, `not JSON: ${messageOf(error)}`);
  }
  if (events === undefined) return;
  if (!Array.isArray(events)) return options.onMisfit(text, "a transaction whose events are no list");
  await options.onTransaction(events);
}

/** Requests that have shown the token. */
const trusted = new WeakSet<http.IncomingMessage>();

/** Only the header counts: a token in the query would stand in every log on the way. Compared in constant time. */
function requireToken(token: string): RequestHandler {
  const expected = Buffer.from(`Bearer ${token}`);
  return (request, response, next) => {
    const given = Buffer.from(request.headers.authorization ?? "");
    const inQuery = request.query.access_token;
    const agrees = given.length === expected.length && timingSafeEqual(given, expected);
    if (agrees && (inQuery === undefined || inQuery === token)) {
      trusted.add(request);
      next();
    } else response.status(403).json({ errcode: "M_FORBIDDEN", error: "Wrong or missing homeserver token" });
  };
}
