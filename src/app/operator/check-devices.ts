import type { Database } from "../../adapters/database/connection.ts";
import { HomeserverProbe } from "../../adapters/matrix/probe.ts";
import { findKeyDifference } from "../../domain/crypto/identity.ts";
import { CryptoMachines } from "../../domain/tables/crypto-machines.ts";
import { type CheckSetting, type Finding, ok, warning } from "./check-finding.ts";

/** Agents whose keys the homeserver is asked for at once. */
const atOnce = 100;

const said = {
  "no device": "nobody can write to it in encrypted rooms: the homeserver does not have the keys of its device",
  "another identity": "people see another identity than ours: somebody else has made one for it",
  "not signed": "people are warned of its device, which its identity has not signed for the homeserver",
} as const;

/** Compares the keys that the homeserver gives people of our agents with those that the agents have. */
export async function* checkDevices(database: Database, setting: CheckSetting): AsyncGenerator<Finding> {
  const { config, registration } = setting;
  const probe = new HomeserverProbe(config.homeserver.url, registration.as_token);
  const devices = await new CryptoMachines(database).known();
  let noted = 0;
  for (let from = 0; from < devices.length; from += atOnce) {
    const some = devices.slice(from, from + atOnce);
    const answer = await probe.keys(some.map(({ userId }) => userId));
    // Why it does not answer was said of the homeserver itself.
    if (answer.status !== 200) return;
    for (const device of some) {
      const difference = findKeyDifference(device, answer.body);
      if (difference === undefined) continue;
      noted += 1;
      const reset = `!encryption ${device.name} reset`;
      yield warning(
        "devices",
        `${device.userId}: ${said[difference]}.`,
        difference === "another identity"
          ? `End the other bridge that speaks for it, if there is one. Then write ${reset} in the control room: people see the old identity again.`
          : `Write ${reset} in the control room: it makes another device under the same identity.`,
      );
    }
  }
  if (noted === 0 && devices.length > 0)
    yield ok(
      "devices",
      `people are given the right keys of ${devices.length === 1 ? "1 agent" : `${devices.length} agents`}.`,
    );
}
