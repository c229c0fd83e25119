/** Names by which whole groups of hosts are allowed. */
export const hostGroups = {
  npm: ["registry.npmjs.org"],
  pypi: ["pypi.org", "files.pythonhosted.org"],
  github: [
    "github.com",
    "api.github.com",
    "codeload.github.com",
    "raw.githubusercontent.com",
    "objects.githubusercontent.com",
    "release-assets.githubusercontent.com",
  ],
} as const;

const isGroup = (entry: string): entry is keyof typeof hostGroups => Object.hasOwn(hostGroups, entry);

/** Matches a host's name, with a dot before it where the hosts below it are meant. */
const hostName = /^\.?(?=.{1,253}$)(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z][a-z0-9-]*[a-z0-9]$/;

/** True if it is a group, a host, or all hosts below one, such as `.example.org`. */
export const isReachEntry = (entry: string): boolean => isGroup(entry) || hostName.test(entry);

/** Hosts to which a sandbox may connect. */
export class Reach {
  readonly #hosts: ReadonlySet<string>;
  readonly #domains: readonly string[];

  /** @param entries see `isReachEntry` */
  constructor(entries: readonly string[]) {
    const hosts = entries.flatMap((entry): readonly string[] => (isGroup(entry) ? hostGroups[entry] : [entry]));
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
