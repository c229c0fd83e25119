import {
  type HomeserverProbe,
  listenForPing,
  newPingOfCheck,
  type PingListener,
  type ProbeAnswer,
} from "../../adapters/matrix/probe.ts";
import type { Clock } from "../../base/lib/clock.ts";
import { messageOf } from "../../base/lib/errors.ts";
import { isObject } from "../../base/lib/json.ts";
import { fetchWithin } from "../../base/lib/outside.ts";
import { type CheckSetting, type Finding, failed, ok, warning } from "./check-finding.ts";

const twin =
  "End one of the two, or give one a registration of its own (init in another folder): two bridges with one registration answer everything twice.";

/**
 * Checks that the homeserver reaches us. A running bridge answers itself; this check stands in for one that does not
 * run.
 */
export async function* checkReach(setting: CheckSetting, probe: HomeserverProbe): AsyncGenerator<Finding> {
  const { config, registration, clock } = setting;
  const { host, port } = config.bridge;
  const listener = await listenForPing(host, port, registration.hs_token).catch((error: unknown) => error);
  const standIn = isListener(listener) ? listener : undefined;
  if (!standIn && (await askBridge(host, port, "live"))?.alive !== true) {
    yield failed(
      "port",
      `nobody can listen on ${host}:${port}: ${messageOf(listener)}.`,
      "Stop the program that uses the port, or choose another host and port in bridge (and bridge.url, and the registration's url).",
    );
    return;
  }
  try {
    const id = newPingOfCheck();
    const answer = await patientPing(probe, registration.id, id, clock);
    const heard = standIn?.heard(id);
    if (standIn?.hasHeardOthers(id)) yield warning("reach", "another bridge works with this registration.", twin);
    const isMissed = !standIn && answer.status === 200 && (await askBridge(host, port, `pings/${id}`))?.heard === false;
    if (isMissed) {
      yield failed(
        "reach",
        `the homeserver reaches another bridge with this registration, which has another database than the one that runs on ${host}:${port}.`,
        twin,
      );
    } else yield* readPing(setting, answer, heard);
  } finally {
    await standIn?.close();
  }
}

const isListener = (value: unknown): value is PingListener =>
  typeof value === "object" && value !== null && "heard" in value;

/** Asks the bridge on this port about its health; undefined where none answers. */
const askBridge = async (host: string, port: number, what: string): Promise<Record<string, unknown> | undefined> => {
  const address = host === "0.0.0.0" || host === "::" ? "127.0.0.1" : host.includes(":") ? `[${host}]` : host;
  try {
    const response = await fetchWithin(`http://${address}:${port}/health/${what}`, {}, { ms: 5_000, bytes: 65_536 });
    const answer: unknown = await response.json();
    return isObject(answer) ? answer : undefined;
  } catch {
    return undefined;
  }
};

/** Synapse refuses a ping while one of its own attempts is under way. */
const patientPing = async (probe: HomeserverProbe, of: string, id: string, clock: Clock): Promise<ProbeAnswer> => {
  for (let attempt = 1; ; attempt++) {
    const answer = await probe.ping(of, id);
    if (attempt === 3 || !answer.error.includes("AlreadyCalled")) return answer;
    await clock.sleep(2_000);
  }
};

function* readPing(
  { config, registration }: CheckSetting,
  ping: ProbeAnswer,
  heard: ReturnType<PingListener["heard"]> | undefined,
): Generator<Finding> {
  const { url } = config.bridge;
  const restart = `Give the homeserver ${config.registration} as it is now, and restart it.`;
  if (heard === "another token" || (heard === undefined && isRefusal(ping))) {
    yield failed("hs-token", "the homeserver uses another hs_token than our registration has.", restart);
    return;
  }
  if (ping.status === 200 && heard !== "nothing") {
    const says = heard === undefined ? "it reaches the bridge, which runs" : `it reaches us at ${url}`;
    yield ok("reach", `${says}, and its hs_token is right.`);
    return;
  }
  if (ping.status === 200 || ping.errcode === "M_BAD_STATUS") {
    yield failed(
      "reach",
      `the homeserver's ping reaches another program (status ${ping.status === 200 ? 200 : String(ping.body.status)}), not ${config.bridge.host}:${config.bridge.port}.`,
      `Correct bridge.url in config.yaml and url in the registration (now ${url}), or what stands before our port; ${restart.charAt(0).toLowerCase()}${restart.slice(1)}`,
    );
    return;
  }
  if (ping.errcode === "M_CONNECTION_FAILED" || ping.errcode === "M_CONNECTION_TIMEOUT") {
    yield failed(
      "reach",
      `the homeserver cannot reach us at the url that it has loaded: ${ping.error}`,
      `It should be ${url}: has the homeserver been restarted with this registration? Is 127.0.0.1 the same machine for it (a container has its own)? Does bridge.host (${config.bridge.host}) listen where it asks? Is there a firewall?`,
    );
    return;
  }
  if (ping.errcode === "M_FORBIDDEN") {
    yield failed("reach", `the homeserver has loaded our token under another id than "${registration.id}".`, restart);
    return;
  }
  if (ping.errcode === "M_URL_NOT_SET") {
    yield failed("reach", "the registration that the homeserver has loaded has no url.", restart);
    return;
  }
  yield failed(
    "reach",
    `the homeserver could not be asked to ping us: ${ping.status} ${ping.errcode} ${ping.error}`.trimEnd(),
    "It needs the ping of application services: Synapse 1.87 or newer.",
  );
}

const isRefusal = ({ errcode, body }: ProbeAnswer): boolean =>
  errcode === "M_BAD_STATUS" && (body.status === 401 || body.status === 403);
