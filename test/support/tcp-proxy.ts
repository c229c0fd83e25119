import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { Listener, reset } from "./listener.ts";

/** Stands before a server, a database for instance, and knows nothing of what is said. */
export interface TcpProxy {
  /** The target's URL with the proxy's address in it. */
  readonly url: string;
  /** Accepts everything and delivers nothing until `release`; with "answers" the target still hears its clients. */
  hold(what?: "everything" | "answers"): void;
  release(): void;
  /** Delivers each piece that much later. */
  delay(ms: number): void;
  /** Resets every connection that is open now. What was held on them is lost. */
  cut(): void;
  /** From now on there is nobody here: connections are reset, new ones refused, until `accept`. */
  refuse(): Promise<void>;
  accept(): Promise<void>;
  stop(): Promise<void>;
}

export async function startTcpProxy(targetUrl: string, { port = 0 } = {}): Promise<TcpProxy> {
  const target = new URL(targetUrl);
  let held: { what: "everything" | "answers"; released: PromiseWithResolvers<void> } | undefined;
  let delayMs = 0;

  const deliver = async (from: Socket, to: Socket, isAnswer: boolean): Promise<void> => {
    for await (const piece of from) {
      if (delayMs > 0) await sleep(delayMs);
      while (held && (isAnswer || held.what === "everything")) await held.released.promise;
      if (from.destroyed) return;
      if (!to.write(piece)) await once(to, "drain");
    }
    to.end();
  };

  const server = createServer({ allowHalfOpen: true }, (client) => {
    const upstream = connect({ host: target.hostname, port: Number(target.port), allowHalfOpen: true });
    upstream.on("error", () => reset(client));
    client.on("close", () => upstream.destroy());
    // Fails when either side is gone, and then the other side has been told above.
    deliver(client, upstream, false).catch(() => {});
    deliver(upstream, client, true).catch(() => {});
  });
  const listener = new Listener(server);
  await listener.accept(port);

  const url = new URL(targetUrl);
  url.hostname = "127.0.0.1";
  url.port = String(listener.port);
  const release = (): void => {
    held?.released.resolve();
    held = undefined;
  };
  return {
    url: url.href,
    hold(what = "everything") {
      release();
      held = { what, released: Promise.withResolvers() };
    },
    release,
    delay(ms) {
      delayMs = ms;
    },
    cut: () => listener.cut(),
    refuse: () => listener.refuse(),
    accept: () => listener.accept(),
    async stop() {
      await listener.refuse();
      release();
    },
  };
}
