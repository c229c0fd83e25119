import { hostsOf } from "../../base/lib/reach-entry.ts";

/** Hosts to which a sandbox may connect. */
export class Reach {
  readonly #hosts: ReadonlySet<string>;
  readonly #domains: readonly string[];

  /** @param entries see `isReachEntry` */
  constructor(entries: readonly string[]) {
    const hosts = entries.flatMap(hostsOf);
    this.#hosts = new Set(hosts.filter((host) => !host.startsWith(".")));
    this.#domains = hosts.filter((host) => host.startsWith("."));
  }

  get isEmpty(): boolean {
    return this.#hosts.size === 0 && this.#domains.length === 0;
  }

  /** @param host in small letters, without a dot at its end */
  has(host: string): boolean {
    return this.#hosts.has(host) || this.#domains.some((domain) => host.endsWith(domain));
  }
}
