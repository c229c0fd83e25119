import { randomInt } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:net";

/**
 * A port of 127.0.0.1 on which nobody listens now. It lies below those that the system gives to outgoing connections,
 * so that it is still free when a server starts on it later, or again.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(15_000, 32_000);
    const server = createServer();
    const listening = once(server, "listening");
    server.listen(port, "127.0.0.1");
    try {
      await listening;
    } catch {
      continue;
    }
    server.close();
    await once(server, "close");
    return port;
  }
}
