import type { Clock } from "../../base/lib/clock.ts";
import { messageOf, UserError } from "../../base/lib/errors.ts";
import type { Log } from "../../base/lib/log.ts";
import { HomeserverError } from "./client.ts";

const pauseMs = 500;

/** Way in which somebody waits. */
interface Waiting {
  readonly clock: Clock;
  readonly log: Log;
  readonly aborted: AbortSignal;
}

/** Resolves when the homeserver answers; says once that it does not. Rejects with the signal's reason. */
export async function waitForHomeserver(
  url: string,
  alive: () => Promise<boolean>,
  { clock, log, aborted }: Waiting,
): Promise<void> {
  for (let hasSaid = false; !(await alive()); hasSaid = true) {
    if (!hasSaid) log.warn(`the homeserver does not answer at ${url}; waiting for it`);
    await clock.sleep(pauseMs, aborted);
  }
}

/** Asks at start until the homeserver answers. Throws a `UserError` when it refuses: the two files do not agree. */
export async function untilAnswered<Result>(
  ask: () => Promise<Result>,
  { clock, log, aborted }: Waiting,
): Promise<Result> {
  for (;;) {
    try {
      return await ask();
    } catch (error) {
      if (!(error instanceof HomeserverError)) throw error;
      if (error.isFinal || error.status === 401) {
        throw new UserError(
          `The homeserver refuses us (${error.message}). It must have the same registration.yaml, named in its ` +
            "app_service_config_files, and must have been restarted since that file was changed.",
        );
      }
      log.warn(`the homeserver does not do yet what it is asked: ${messageOf(error)}`);
      await clock.sleep(error.retryAfterMs ?? pauseMs, aborted);
    }
  }
}
