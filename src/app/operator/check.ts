import type { Database } from "../../adapters/database/connection.ts";
import { type Registration, readRegistration } from "../../adapters/matrix/registration.ts";
import { type Clock, systemClock } from "../../base/lib/clock.ts";
import { messageOf, UserError } from "../../base/lib/errors.ts";
import { type Config, loadConfig } from "../config/config.ts";
import { checkAccess } from "./check-access.ts";
import { checkDatabase } from "./check-database.ts";
import { checkEmbeddings } from "./check-embeddings.ts";
import { type CheckSetting, type Finding, failed, ok } from "./check-finding.ts";
import { checkHomeserver } from "./check-homeserver.ts";
import { checkModels } from "./check-model.ts";
import { checkSandbox } from "./check-sandbox.ts";
import { checkServers } from "./check-servers.ts";
import { checkWeb } from "./check-web.ts";

/** In the order in which an operator mends things. */
const checks: readonly ((setting: CheckSetting) => AsyncIterable<Finding>)[] = [
  checkHomeserver,
  checkDatabase,
  checkAccess,
  checkModels,
  checkEmbeddings,
  checkSandbox,
  checkWeb,
  checkServers,
];

/**
 * Looks at everything that the bridge needs, in order, as it is now: the files are read anew. What depends on
 * something that failed is left out. Changes nothing, and costs one short call for each model.
 * @param file the configuration file
 * @param running the database of the bridge that is to look at itself
 */
export async function* check(file: string, running?: Database, clock: Clock = systemClock): AsyncGenerator<Finding> {
  let config: Config;
  try {
    config = await loadConfig(file);
  } catch (error) {
    yield failed("configuration", wordsOf(error));
    return;
  }
  yield ok("configuration", `${config.file} can be read.`);
  let registration: Registration;
  try {
    const terms = { serverName: config.homeserver.serverName, url: config.bridge.url };
    registration = await readRegistration(config.registration, terms);
  } catch (error) {
    yield failed("registration", wordsOf(error));
    return;
  }
  yield ok("registration", `${config.registration} fits the configuration.`);
  const setting = { config, registration, clock, running, found: {} };
  for (const one of checks) yield* one(setting);
}

/** Puts an expected error into words for a person; a bug is not hidden. */
const wordsOf = (error: unknown): string => {
  if (error instanceof UserError) return messageOf(error);
  throw error;
};
