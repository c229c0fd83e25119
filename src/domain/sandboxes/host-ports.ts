import { type AddressInfo, createServer, type Server } from "node:net";
import { pipeline } from "node:stream";
import { RunnerRefused } from "../../adapters/sandbox/runner-link.ts";
import { UserError } from "../../base/lib/errors.ts";
import type { Conversation } from "../../base/lib/ids.ts";
import { InTurn } from "../../base/lib/in-turn.ts";
import type { RunningSandbox, SandboxProvider } from "./sandbox.ts";

interface OpenPort {
  readonly of: Conversation;
  /** Port of the sandbox. */
  readonly inside: number;
  readonly server: Server;
  readonly boot: string;
  readonly port: number;
}

const portsMost = 100;
const connectionsMost = 32;

/** Ports of the machine's loopback that lead to servers in conversations' sandboxes, for as long as their sandbox runs. */
export class HostPorts {
  readonly #sandboxes: SandboxProvider;
  readonly #open = new Map<string, OpenPort>();
  readonly #inTurn = new InTurn<string>();

  constructor(sandboxes: SandboxProvider) {
    this.#sandboxes = sandboxes;
  }

  /** Opens a port of 127.0.0.1, unless one is open already. Throws a `UserError` where no server listens in the sandbox. */
  async open({ agent, roomId }: Conversation, port: number): Promise<number> {
    const key = JSON.stringify([agent, roomId, port]);
    return this.#inTurn.run([key], async () => {
      const sandbox = await this.#sandboxes.use({ agent, roomId });
      await requireServer(sandbox, port);
      const known = this.#open.get(key);
      if (known?.boot === sandbox.boot) return known.port;
      known?.server.close();
      if (this.#open.size >= portsMost)
        throw new UserError(`${portsMost} ports are open already: they close when their computers stop.`);
      const opened = { ...(await this.#listen(key, sandbox, port)), of: { agent, roomId }, inside: port };
      this.#open.set(key, opened);
      return opened.port;
    });
  }

  hasOpen({ agent, roomId }: Conversation): boolean {
    return [...this.#open.values()].some(({ of }) => of.agent === agent && of.roomId === roomId);
  }

  /** True if a port is open that leads to a server in the conversation's sandbox. */
  async isServing({ agent, roomId }: Conversation, sandbox: RunningSandbox): Promise<boolean> {
    for (const { boot, inside, of } of this.#open.values()) {
      if (of.agent !== agent || of.roomId !== roomId || boot !== sandbox.boot) continue;
      if (await isAnswered(sandbox, inside)) return true;
    }
    return false;
  }

  close(): void {
    for (const { server } of this.#open.values()) server.close();
    this.#open.clear();
  }

  async #listen(key: string, sandbox: RunningSandbox, port: number) {
    const server = createServer({ allowHalfOpen: true }, (socket) => {
      socket.on("error", () => {});
      // The runner answers after a restart, too: another boot's servers are others.
      const dial = async () => {
        if ((await sandbox.runner.boot()) !== sandbox.boot) throw new Error("the sandbox was started anew");
        return await sandbox.runner.dial(port);
      };
      dial().then(
        (inside) => pipeline(socket, inside, socket, () => {}),
        (error: unknown) => {
          socket.destroy();
          if (error instanceof RunnerRefused && error.code === "unreachable") return;
          server.close();
          if (this.#open.get(key)?.server === server) this.#open.delete(key);
        },
      );
    });
    server.maxConnections = connectionsMost;
    // Keeps no process alive.
    server.unref();
    await new Promise<void>((resolve, reject) => {
      server.once("error", reject);
      server.listen(0, "127.0.0.1", resolve);
    });
    return { server, boot: sandbox.boot, port: (server.address() as AddressInfo).port } as const;
  }
}

async function requireServer(sandbox: RunningSandbox, port: number): Promise<void> {
  if (await isAnswered(sandbox, port)) return;
  throw new UserError(
    `Nothing listens on port ${port} of the computer: start the server first, in the background, and look at its output.`,
  );
}

async function isAnswered({ runner }: RunningSandbox, port: number): Promise<boolean> {
  try {
    (await runner.dial(port)).destroy();
    return true;
  } catch (error) {
    if (error instanceof RunnerRefused && error.code === "unreachable") return false;
    throw error;
  }
}
