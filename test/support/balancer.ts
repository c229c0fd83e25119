import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";
import { Listener, reset } from "./listener.ts";

/** Gives each connection to the next port on which somebody listens, as a load balancer does. Returns its own port. */
export async function startBalancer(ports: readonly number[]): Promise<{ port: number; stop(): Promise<void> }> {
  let next = 0;
  const server = createServer({ pauseOnConnect: true }, async (client) => {
    const upstream = await firstThatListens(ports.map((_, index) => ports[(next + index) % ports.length] ?? 0));
    next += 1;
    if (!upstream) return reset(client);
    upstream.on("error", () => reset(client));
    upstream.on("close", () => client.destroy());
    client.on("close", () => upstream.destroy());
    client.pipe(upstream).pipe(client);
  });
  const listener = new Listener(server);
  await listener.accept();
  return { port: listener.port, stop: () => listener.refuse() };
}

async function firstThatListens(ports: readonly number[]): Promise<Socket | undefined> {
  for (const port of ports) {
    const socket = connect(port, "127.0.0.1");
    const isConnected = await once(socket, "connect").then(
      () => true,
      () => false,
    );
    if (isConnected) return socket;
  }
  return undefined;
}
