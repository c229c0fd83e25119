import type { SandboxHost, SandboxSpec } from "../../adapters/sandbox/host.ts";
import { messageOf, UserError } from "../../base/lib/errors.ts";
import type { Log } from "../../base/lib/log.ts";

/** Looks once, in the background, whether sandboxes can be used on their host. */
export class SelfTest {
  readonly #host: Pick<SandboxHost, "check"> | undefined;
  readonly #spec: SandboxSpec;
  readonly #log: Log;
  #running: Promise<void> | undefined;
  #refusal: string | undefined;

  /** @param host undefined: there are to be none */
  constructor(host: Pick<SandboxHost, "check"> | undefined, spec: SandboxSpec, log: Log) {
    this.#host = host;
    if (!host)
      this.#refusal =
        "There are no computers to run commands on: sandbox.kind is off in config.yaml. Those who run this bridge can change that.";
    this.#spec = spec;
    this.#log = log;
  }

  /** Says why there are no sandboxes, and what to do; undefined where there are, or as long as that is not known. */
  get refusal(): string | undefined {
    return this.#refusal;
  }

  start(): void {
    this.#running ??= this.#run();
  }

  /** @throws UserError where sandboxes cannot be used */
  async pass(): Promise<void> {
    this.start();
    await this.#running;
    if (this.#refusal !== undefined) throw new UserError(this.#refusal);
  }

  async #run(): Promise<void> {
    if (!this.#host) return;
    try {
      for await (const { point, state, says, remedy = "Run clevernet check." } of this.#host.check(this.#spec)) {
        if (state === "ok") continue;
        this.#refuse(`${point}: ${says} ${remedy.replace(/\.?$/, ".")}`);
        return;
      }
      this.#log.info("sandboxes can be used");
    } catch (error) {
      this.#refuse(`${messageOf(error)}.`);
    }
  }

  #refuse(why: string): void {
    this.#refusal = `There are no computers to run commands on (${why.replace(/\.$/, "")}). Those who run this bridge can mend that; then it has to be restarted.`;
    this.#log.warn(`agents cannot run commands: ${why}`);
  }
}
