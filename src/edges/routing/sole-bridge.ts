import type { MatrixClient } from "../../adapters/matrix/client.ts";
import { isPingOfCheck } from "../../adapters/matrix/probe.ts";
import type { Clock } from "../../base/lib/clock.ts";
import { messageOf } from "../../base/lib/errors.ts";
import { secret } from "../../base/lib/ids.ts";
import type { Log } from "../../base/lib/log.ts";
import type { Pings } from "../../domain/tables/pings.ts";

interface SoleBridgeParts {
  readonly client: Pick<MatrixClient, "ping">;
  readonly pings: Pings;
  readonly clock: Clock;
  readonly log: Log;
  readonly tellOperators: (text: string, key: string) => void;
  /** Called when work may go on that was withheld. */
  readonly onAllowed: () => void;
}

const remedy =
  "End one of the two, or give one a registration of its own (init in another folder); `check` looks at it anew.";

/**
 * Finds out whether another bridge works with our registration on another database: both would answer everything. The
 * homeserver is asked to ping the application service with an id of ours; which of our processes hears it does not
 * matter, since ids are in the database. If somebody hears it and none of ours does, the homeserver belongs to the
 * other one, and we keep still. A homeserver that is away, knows no pings or cannot reach anybody says nothing about it.
 */
export class SoleBridge {
  readonly #parts: SoleBridgeParts;
  #isElsewhere = false;
  #asking: Promise<boolean> | undefined;

  constructor(parts: SoleBridgeParts) {
    this.#parts = parts;
  }

  /** True while we may sweep and send, as far as is known. */
  get mayWork(): boolean {
    return !this.#isElsewhere;
  }

  /** Makes the homeserver ping, which also makes it push what it holds back. Returns `mayWork`. Never throws. */
  ask(): Promise<boolean> {
    this.#asking ??= this.#ask()
      .catch((error: unknown) => this.#parts.log.info(`the homeserver was asked to ping us: ${messageOf(error)}`))
      .then(() => this.mayWork)
      .finally(() => {
        this.#asking = undefined;
      });
    return this.#asking;
  }

  /** The homeserver has pinged this process. */
  async hear(id: string | undefined): Promise<void> {
    const { clock, log, pings, tellOperators } = this.#parts;
    if ((await pings.markHeard(id)) || isPingOfCheck(id)) return;
    const text =
      "The homeserver was asked to ping us by another program: a second bridge works with our registration, on another " +
      `database. It keeps still as long as it knows of us; otherwise both answer everything. ${remedy}`;
    log.warn({ ping: id }, text);
    tellOperators(text, `foreign ping ${clock.now().toISOString().slice(0, 10)}`);
  }

  /** True if one of our processes has heard this ping. */
  wasHeard(id: string): Promise<boolean> {
    return this.#parts.pings.wasHeard(id);
  }

  async #ask(): Promise<void> {
    const { client, log, pings } = this.#parts;
    const id = secret(16);
    await pings.markAsked(id);
    const hasArrived = await client.ping(id).catch((error: unknown) => {
      // Synapse answers 502 while an attempt of its own is still running.
      log.info(`the homeserver was asked to ping us: ${messageOf(error)}`);
      return false;
    });
    if (await pings.wasHeard(id)) this.#settle(false);
    else if (hasArrived) this.#settle(true);
  }

  #settle(isElsewhere: boolean): void {
    const { log, onAllowed } = this.#parts;
    if (this.#isElsewhere === isElsewhere) return;
    this.#isElsewhere = isElsewhere;
    if (isElsewhere) {
      log.error(
        "the homeserver pushes to another bridge that has our registration and another database. So that nothing is " +
          `answered twice, this one neither sweeps nor sends, and is not ready, until it is pinged itself. ${remedy}`,
      );
    } else {
      log.info("the homeserver pushes to us again");
      onAllowed();
    }
  }
}
