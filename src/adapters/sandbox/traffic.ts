/** Connections of a sandbox with one host. */
export interface HostTraffic {
  readonly host: string;
  /** Bytes. */
  readonly sent: number;
  readonly received: number;
  /** Connections that were not made, as the host is not allowed. */
  readonly refused: number;
}

/** Hosts that are told apart; what a sandbox asks for beyond them is counted as one. */
const hostsMost = 200;
const otherHosts = "others";

/** A connection that counts its bytes. */
interface CountedStream {
  readonly bytesRead: number;
  readonly bytesWritten: number;
  once(event: "close", call: () => void): unknown;
}

/** Counts what a sandbox sends and receives, by host. */
export class Traffic {
  readonly #open = new Map<CountedStream, string>();
  readonly #hosts = new Map<string, { sent: number; received: number; refused: number }>();

  add(host: string, { sent = 0, received = 0, refused = 0 }: Partial<Omit<HostTraffic, "host">>): void {
    const name = this.#hosts.has(host) || this.#hosts.size < hostsMost ? host : otherHosts;
    const known = this.#hosts.get(name) ?? { sent: 0, received: 0, refused: 0 };
    this.#hosts.set(name, {
      sent: known.sent + sent,
      received: known.received + received,
      refused: known.refused + refused,
    });
  }

  /** Counts what goes over a connection to a host, while it is open and then. */
  follow(host: string, stream: CountedStream): void {
    this.#open.set(stream, host);
    stream.once("close", () => {
      this.#open.delete(stream);
      this.add(host, { sent: stream.bytesWritten, received: stream.bytesRead });
    });
  }

  /** All that was counted so far. */
  counts(): readonly HostTraffic[] {
    const now = new Traffic();
    for (const [host, counted] of this.#hosts) now.#hosts.set(host, counted);
    for (const [{ bytesRead, bytesWritten }, host] of this.#open)
      now.add(host, { sent: bytesWritten, received: bytesRead });
    return [...now.#hosts].map(([host, counted]) => ({ host, ...counted }));
  }

  /** Difference to counts from before: the hosts with which there was something since. */
  since(before: readonly HostTraffic[]): readonly HostTraffic[] {
    return this.counts()
      .map((now) => {
        const then = before.find(({ host }) => host === now.host);
        return {
          host: now.host,
          sent: now.sent - (then?.sent ?? 0),
          received: now.received - (then?.received ?? 0),
          refused: now.refused - (then?.refused ?? 0),
        };
      })
      .filter(({ sent, received, refused }) => sent + received + refused > 0);
  }
}
