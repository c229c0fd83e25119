import type { SandboxHost, SandboxSpec } from "../../adapters/sandbox/host.ts";
import type { Clock } from "../../base/lib/clock.ts";
import { messageOf, UserError } from "../../base/lib/errors.ts";
import type { Log } from "../../base/lib/log.ts";

/** A test that has failed is repeated after this pause: somebody may have mended what it found. */
const againMs = 60_000;

export interface SelfTestParts {
  /** Undefined: there are to be none. */
  readonly host: Pick<SandboxHost, "check"> | undefined;
  readonly spec: SandboxSpec;
  readonly clock: Pick<Clock, "monotonic">;
  readonly log: Log;
}

/** Looks, in the background, whether sandboxes can be used on their host: until they can. */
export class SelfTest {
  readonly #parts: SelfTestParts;
  #running: Promise<void> | undefined;
  #failedAt: number | undefined;
  #refusal: string | undefined;
  #isPassed = false;

  constructor(parts: SelfTestParts) {
    this.#parts = parts;
    if (!parts.host)
      this.#refusal =
        "There are no computers to run commands on: sandbox.kind is off in config.yaml. Those who run this bridge can change that.";
  }

  /** Says why there are no sandboxes, and what to do; undefined where there are, or as long as that is not known. */
  get refusal(): string | undefined {
    return this.#refusal;
  }

  get isPassed(): boolean {
    return this.#isPassed;
  }

  /** Begins the test, unless it was passed, or has failed only just now. */
  start(): void {
    const isDue = this.#failedAt !== undefined && this.#parts.clock.monotonic() - this.#failedAt >= againMs;
    if (this.#running && !isDue) return;
    this.#failedAt = undefined;
    this.#running = this.#run();
  }

  /** @throws UserError where sandboxes cannot be used */
  async pass(): Promise<void> {
    this.start();
    await this.#running;
    if (this.#refusal !== undefined) throw new UserError(this.#refusal);
  }

  async #run(): Promise<void> {
    const { host, log, spec } = this.#parts;
    if (!host) return;
    try {
      for await (const { point, state, says, remedy = "Run clevernet check." } of host.check(spec)) {
        if (state === "ok") continue;
        this.#refuse(`${point}: ${says} ${remedy.replace(/\.?$/, ".")}`);
        return;
      }
      this.#refusal = undefined;
      this.#isPassed = true;
      log.info("sandboxes can be used");
    } catch (error) {
      this.#refuse(`${messageOf(error)}.`);
    }
  }

  #refuse(why: string): void {
    const { clock, log } = this.#parts;
    const before = this.#refusal;
    this.#failedAt = clock.monotonic();
    this.#refusal = `There are no computers to run commands on (${why.replace(/\.$/, "")}). Those who run this bridge can mend that; then it takes a minute or two.`;
    if (this.#refusal !== before) log.warn(`agents cannot run commands: ${why}`);
  }
}
