import { randomInt } from "node:crypto";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { createServer } from "node:net";

/**
 * A port of 127.0.0.1 on which nobody listens now, and which no other call gets while this process lives: test files
 * run side by side. It lies below those that the system gives to outgoing connections, so that it is still free when a
 * server starts on it later, or again.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(15_000, 32_000);
    if ((await claim(port)) && (await isFree(port))) return port;
  }
}

/** Whoever has the UDP port of the same number, which nothing else here uses, has the port. */
async function claim(port: number): Promise<boolean> {
  const socket = createSocket("udp4").unref();
  const bound = once(socket, "listening");
  socket.bind({ port, address: "127.0.0.1", exclusive: true });
  return bound.then(
    () => true,
    () => false,
  );
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer();
  const listening = once(server, "listening");
  server.listen(port, "127.0.0.1");
  try {
    await listening;
  } catch {
    return false;
  }
  server.close();
  await once(server, "close");
  return true;
}
