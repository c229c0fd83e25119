import { HomeserverProbe, type ProbeAnswer } from "../../adapters/matrix/probe.ts";
import { type CheckSetting, type Finding, failed, ok, warning } from "./check-finding.ts";
import { checkReach } from "./check-reach.ts";

/** Seconds by which the two clocks may differ. */
const skewMax = 30;

/** Checks that the homeserver is there, is the right one, and knows us as the registration says. */
export async function* checkHomeserver(setting: CheckSetting): AsyncGenerator<Finding> {
  const { config, registration, clock } = setting;
  const { url, serverName } = config.homeserver;
  const probe = new HomeserverProbe(url, registration.as_token);
  const versions = await probe.versions();
  const silent = findSilence(url, versions);
  yield silent ?? ok("homeserver", `it answers at ${url}.`);
  if (silent) return;
  if (versions.date) yield skewOf(versions.date, clock.now());

  const restart = `Name ${config.registration} in app_service_config_files of homeserver.yaml, and restart the homeserver.`;
  const me = await probe.whoami();
  if (me.status !== 200) {
    yield failed(
      "as-token",
      `the homeserver does not know our as_token (${me.status} ${me.errcode}): it has no registration of ours, or an older one.`,
      restart,
    );
    return;
  }
  const userId = String(me.body.user_id);
  const bot = `@${registration.sender_localpart}:${serverName}`;
  if (!userId.endsWith(`:${serverName}`)) {
    yield failed(
      "server-name",
      `the homeserver calls us ${userId}, so its name is ${userId.slice(userId.indexOf(":") + 1)} and not ${serverName}.`,
      "Correct homeserver.serverName in config.yaml (init in a new folder makes both files anew).",
    );
    return;
  }
  yield ok("as-token", `the homeserver knows us as ${userId}.`);
  if (userId !== bot) {
    yield failed("sender", `the homeserver has loaded a registration whose sender is ${userId}, not ${bot}.`, restart);
  }
  yield* checkNamespace(probe, serverName, restart);
  yield* checkReach(setting, probe);
}

const findSilence = (url: string, versions: ProbeAnswer): Finding | undefined => {
  if (versions.status === 0) {
    return failed(
      "homeserver",
      `it does not answer at ${url}: ${versions.error}.`,
      "Start it, or correct homeserver.url in config.yaml: the address of its client API, as seen from here.",
    );
  }
  if (versions.status === 200 && Array.isArray(versions.body.versions)) return undefined;
  return failed(
    "homeserver",
    `what answers at ${url} is no Matrix homeserver (status ${versions.status}).`,
    "Correct homeserver.url in config.yaml: often another port, or a reverse proxy that does not pass on /_matrix.",
  );
};

const skewOf = (theirs: Date, ours: Date): Finding => {
  const seconds = Math.round((ours.getTime() - theirs.getTime()) / 1_000);
  if (Math.abs(seconds) <= skewMax) return ok("clock", "it agrees with the homeserver's.");
  return warning(
    "clock",
    `ours is ${Math.abs(seconds)} s ${seconds > 0 ? "ahead of" : "behind"} the homeserver's.`,
    "Let both machines keep the time by NTP: agents would tell and keep wrong times.",
  );
};

/** Asks as nobody: what the homeserver has loaded counts, not what our file says. */
async function* checkNamespace(probe: HomeserverProbe, server: string, restart: string): AsyncGenerator<Finding> {
  const agent = "agent_clevernet.check";
  const speaks = await probe.whoami(`@${agent}:${server}`);
  if (speaks.status === 403 && speaks.error.includes("masquerade")) {
    yield failed(
      "namespaces",
      `the homeserver does not let us speak as @agent_…:${server}: it has loaded another namespace.`,
      restart,
    );
    return;
  }
  const free = await probe.available(agent);
  if (free.status === 200) {
    yield failed("namespaces", `anybody may register @agent_…:${server}: the namespace is not exclusive.`, restart);
    return;
  }
  yield ok("namespaces", `@agent_…:${server} ${free.errcode === "M_EXCLUSIVE" ? "are ours alone" : "are ours"}.`);
}
