import type { LineStream } from "../../adapters/mcp/line-transport.ts";
import { HostError, type SandboxHost } from "../../adapters/sandbox/host.ts";
import { LineProgram } from "../../adapters/sandbox/line-program.ts";
import { type SandboxSettings, specOf } from "../../adapters/sandbox/open-host.ts";
import { proxyEnvironment, proxyPort, SandboxProxy } from "../../adapters/sandbox/proxy.ts";
import { Reach } from "../../adapters/sandbox/reach.ts";
import { Runner } from "../../adapters/sandbox/runner.ts";
import { LinkLost } from "../../adapters/sandbox/runner-link.ts";
import type { Clock } from "../../base/lib/clock.ts";
import { UserError } from "../../base/lib/errors.ts";
import { digest } from "../../base/lib/ids.ts";
import type { Log } from "../../base/lib/log.ts";

const label = "clevernet.servers";
const patienceMs = 5_000;
/** Bytes of a line: an answer with a file of ten megabytes. */
const most = { bytes: 16_000_000, waiting: 100_000 };

/** A program that is a server of tools, and speaks by its standard input and output. */
export interface ServerProgram {
  /** Name of the server. */
  readonly name: string;
  readonly command: readonly [string, ...string[]];
  /** Beside that of the image. */
  readonly env: Readonly<Record<string, string>>;
  /** Hosts that it may reach; see `isReachEntry`. */
  readonly network: readonly string[];
}

interface ServerComputersParts {
  /** Undefined: there are no sandboxes. */
  readonly host: SandboxHost | undefined;
  readonly settings: SandboxSettings;
  /** Throws a `UserError` where sandboxes cannot be used. */
  readonly pass: () => Promise<void>;
  /** Name of this process among all whose sandboxes are on the same host, the same after each start. */
  readonly owner: () => Promise<string>;
  readonly clock: Clock;
  readonly log: Log;
}

/** Sandboxes of servers that are programs: each has one of its own, with the same walls as those of conversations. */
export class ServerComputers {
  readonly #parts: ServerComputersParts;

  constructor(parts: ServerComputersParts) {
    this.#parts = parts;
  }

  /** Starts the program in its sandbox, which runs nothing else. Throws a `UserError` that says why that cannot be done. */
  async start(program: ServerProgram): Promise<LineStream> {
    const { clock, host, log, pass, owner } = this.#parts;
    await pass();
    if (!host) throw new UserError("there are no sandboxes: sandbox.kind is off in config.yaml");
    const by = await owner();
    const id = idOf(by, program.name);
    const runner = new Runner({ connect: () => host.connect(id), clock, patienceMs });
    const end = async (): Promise<void> => {
      await runner.close();
      await host.stop(id);
    };
    try {
      // A process that has died may have left the program before at work.
      await host.stop(id);
      await host.start(await host.create(specOf(this.#parts.settings, id, { [label]: by })));
      const line = await run(runner, program);
      return {
        line: (signal) =>
          line.line(signal).catch((error: unknown) => {
            if (!signal.aborted) log.warn({ server: program.name, says: line.says }, "a server's program has ended");
            throw error;
          }),
        write: (text) => line.write(text),
        end,
      };
    } catch (error) {
      await end().catch(() => {});
      if (error instanceof HostError || error instanceof LinkLost) throw new UserError(error.message);
      throw error;
    }
  }

  /** Removes the sandboxes of servers that are no programs any more, with all their files. */
  async keep(names: readonly string[]): Promise<void> {
    const { host, log, owner } = this.#parts;
    if (!host) return;
    try {
      const by = await owner();
      const kept = names.map((name) => idOf(by, name));
      const ours = await host.find({ name: label, value: by });
      for (const { id } of ours.filter((one) => !kept.includes(one.id))) await host.remove(id);
    } catch (error) {
      if (!(error instanceof HostError)) throw error;
      log.debug(`sandboxes of servers: ${error.message}`);
    }
  }
}

const idOf = (owner: string, name: string): string =>
  `clevernet-mcp-${Buffer.from(digest("server", owner, name), "base64url")
    .toString("hex")
    .slice(0, 20)}`;

async function run(runner: Runner, { command, env, network }: ServerProgram): Promise<LineProgram> {
  const reach = new Reach(network);
  if (!reach.isEmpty) {
    const proxy = new SandboxProxy({ reach });
    await runner.listen(proxyPort, (connection) => proxy.serve(connection));
  }
  const values = Object.entries({ ...(reach.isEmpty ? {} : proxyEnvironment), ...env });
  const argv = ["/usr/bin/env", ...values.map(([name, value]) => `${name}=${value}`), ...command] as const;
  return LineProgram.start({ runner, boot: await runner.boot() }, argv, most);
}
