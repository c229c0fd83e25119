import { once } from "node:events";
import type { AddressInfo, Server, Socket } from "node:net";

/** Node never closes a connection that is reset while it ends, and then cannot end its own process. */
export const reset = (socket: Socket): void => {
  if (socket.writableEnded) socket.destroy();
  else socket.resetAndDestroy();
};

/** A server on 127.0.0.1 that can vanish and come back on the same port: what all proxies have in common. */
export class Listener {
  readonly #server: Server;
  readonly #connections = new Set<Socket>();
  #port = 0;

  constructor(server: Server) {
    this.#server = server;
    server.on("connection", (socket) => {
      this.#connections.add(socket);
      socket.on("error", () => {});
      socket.on("close", () => this.#connections.delete(socket));
    });
  }

  get port(): number {
    return this.#port;
  }

  /** Listens, again after `refuse`. `port` counts the first time. */
  async accept(port = this.#port): Promise<void> {
    if (this.#server.listening) return;
    this.#server.listen(port, "127.0.0.1");
    await once(this.#server, "listening");
    this.#port = (this.#server.address() as AddressInfo).port;
  }

  /** Resets every connection that is open now. */
  cut(): void {
    for (const socket of this.#connections) reset(socket);
  }

  /** Resets every connection and refuses new ones, as when nothing listens here. */
  async refuse(): Promise<void> {
    if (!this.#server.listening) return;
    this.#server.close();
    this.cut();
    await once(this.#server, "close");
  }
}
