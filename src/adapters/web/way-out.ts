import { lookup } from "node:dns";
import { Agent, buildConnector, fetch, type RequestInit, type Response } from "undici";
import { afterIdling } from "../../base/lib/clock.ts";
import { UserError } from "../../base/lib/errors.ts";
import { type Limits, networkReason, noLonger, OverLimit } from "../../base/lib/outside.ts";
import { doorOf, type LookupAll, OpenDoors, pinnedLookup, refusalOfDoor } from "../../base/lib/public-address.ts";
import { type Fetched, type Fetcher, type FetchRequest, taken } from "./fetched.ts";
import { networkWords } from "./network-words.ts";

export interface WayOutSettings {
  /** Exact places that are reached although they are not public: `host:port`. */
  readonly allow: readonly string[];
  readonly lookup?: LookupAll;
  /** From the request to the last byte, redirects included. */
  readonly totalMs?: number;
  /** For `exchange`: servers may be silent for as long as those who ask have patience. */
  readonly isPatient?: boolean;
}

const redirectsMost = 5;
const redirections = [301, 302, 303, 307, 308];
const totalMost = 30_000;
const addressChars = 4_000;

/**
 * The only way to an address that somebody's text may have named. Each address on the way is looked at before anything
 * is sent: where it leads, by the rules of `public-address.ts`. There are no cookies and no headers but our own, and
 * everything has a limit. Rejects with a `UserError` that says why nothing came, or with the signal's reason.
 */
export class WayOut implements Fetcher {
  readonly #open: OpenDoors;
  readonly #agent: Agent;
  readonly #totalMs: number;

  constructor({ allow, lookup: lookupAll = lookup, totalMs = totalMost, isPatient = false }: WayOutSettings) {
    this.#open = new OpenDoors(allow);
    this.#totalMs = totalMs;
    const guarded = buildConnector({ lookup: pinnedLookup(lookupAll), timeout: 10_000 });
    const opened = buildConnector({ timeout: 10_000 });
    this.#agent = new Agent({
      connect: (options, callback) => {
        const door = doorOf(new URL(`${options.protocol}//${options.host ?? options.hostname}`));
        const refusal = refusalOfDoor(door, this.#open);
        // An address that is no name is never looked up: this is the last that sees it.
        if (refusal !== undefined) callback(new UserError(refusal), null);
        else (this.#open.has(door) ? opened : guarded)(options, callback);
      },
      headersTimeout: isPatient ? 0 : 15_000,
      bodyTimeout: isPatient ? 0 : 10_000,
      maxHeaderSize: 16_384,
      // No connection outlives its request: the next one is looked up anew.
      keepAliveTimeout: 1,
      keepAliveMaxTimeout: 1,
      pipelining: 1,
      connections: isPatient ? 32 : 4,
      allowH2: false,
    });
  }

  /** Reads an address as we may go there; a `UserError` otherwise. */
  check(text: string, base?: URL): URL {
    if (text.length > addressChars) throw new UserError(`An address of ${text.length} characters is too long.`);
    const url = URL.parse(text, base?.href);
    if (!url) throw new UserError(`This is no address of a page${base ? "" : `: ${text.slice(0, 200)}`}.`);
    if (url.protocol !== "http:" && url.protocol !== "https:")
      throw new UserError(`Only addresses of http and https can be opened, not of ${url.protocol.slice(0, -1)}.`);
    if (url.username !== "" || url.password !== "")
      throw new UserError("An address with a user name or a password in it is not opened.");
    const refusal = refusalOfDoor(doorOf(url), this.#open);
    if (refusal !== undefined)
      throw new UserError(`${refusal}: it is not opened, unless an operator allows it (web.allow in config.yaml).`);
    return url;
  }

  async get(text: string, { signal, accept, most }: FetchRequest): Promise<Fetched> {
    let url = this.check(text);
    const late = new AbortController();
    const inTime = afterIdling(this.#totalMs, () => late.abort());
    const either = AbortSignal.any([signal, late.signal]);
    try {
      for (let hop = 0; ; hop++) {
        const response = await this.#ask(url, accept, either);
        const next = redirections.includes(response.status) ? response.headers.get("location") : null;
        if (next === null) return await taken(url, response, most);
        await response.body?.cancel();
        if (hop === redirectsMost)
          throw new UserError(`${url.host} leads from one address to the next, more than ${redirectsMost} times.`);
        url = this.check(next, url);
      }
    } catch (thrown) {
      signal.throwIfAborted();
      if (late.signal.aborted)
        throw new UserError(`${url.host} did not answer in full within ${this.#totalMs / 1_000} s.`);
      const reason = thrown instanceof UserError ? thrown : networkReason(thrown);
      throw reason instanceof UserError
        ? reason
        : new UserError(`${url.host} cannot be read: ${networkWords(reason)}.`);
    } finally {
      inTime();
    }
  }

  /** True if an operator has opened the place, so that it may be one that nobody outside reaches. */
  isOpened(url: URL): boolean {
    return this.#open.has(doorOf(url));
  }

  /**
   * Sends one request of a protocol, as `fetch` does, within limits of its answer. A redirect is an answer, too: nothing
   * is followed.
   */
  async exchange(address: string | URL, init: globalThis.RequestInit, limits: Limits): Promise<globalThis.Response> {
    const { method = "GET", body } = init;
    const late = new AbortController();
    const inTime = afterIdling(limits.ms, () => late.abort(new OverLimit("time", `no whole answer in time`)));
    const signal = init.signal ? AbortSignal.any([init.signal, late.signal]) : late.signal;
    const headers = [...new Headers(init.headers)];
    try {
      const asked = { method, headers, signal, ...(typeof body === "string" && { body }) };
      const response = await this.#send(this.check(String(address)), asked);
      if (response.body === null) inTime();
      const answer = response.body?.pipeThrough(noLonger(limits.bytes, inTime)) ?? null;
      const { status, statusText } = response;
      return new globalThis.Response(answer, { status, statusText, headers: [...response.headers] });
    } catch (thrown) {
      inTime();
      signal.throwIfAborted();
      throw networkReason(thrown);
    }
  }

  async close(): Promise<void> {
    await this.#agent.destroy();
  }

  #ask(url: URL, accept: string, signal: AbortSignal): Promise<Response> {
    const headers = { "user-agent": "Clevernet", accept, "accept-encoding": "gzip, br" };
    return this.#send(url, { headers, signal });
  }

  #send(url: URL, init: RequestInit): Promise<Response> {
    return fetch(url, { ...init, dispatcher: this.#agent, redirect: "manual", credentials: "omit", referrer: "" });
  }
}
