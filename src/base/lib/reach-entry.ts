/** Names by which whole groups of hosts are allowed. */
const hostGroups = {
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

/** Hosts that an entry means; those that begin with a dot are all hosts below. */
export const hostsOf = (entry: string): readonly string[] => (isGroup(entry) ? hostGroups[entry] : [entry]);

/** Says which entries there are, for messages. */
export const reachEntries = "a list of hosts, such as [npm, pypi, github, example.org, .example.org]";
