/** Topics under which `!help` groups commands, in the order in which it shows them, each with a line about it. */
export const topics = {
  basics: "ask the agent for something, and see what it does",
  files: "files, and windows on them",
  web: "pages of the web, and searches in it",
  servers: "tools of other servers (MCP)",
  memory: "what the agent remembers, and what it works on",
  speaking: "have the agent say or send something",
  todo: "what the agent has set out to do here",
  sandbox: "run commands on a computer of this room's own",
  schedule: "what the agent is to do later, or again and again",
  approvals: "what was done, what waits for a yes, and what the agent saw",
  spending: "what was spent, and limits",
  agents: "make agents and change them",
  bridge: "people's rights, rooms, and the bridge itself",
} as const;
export type Topic = keyof typeof topics;

/** Reads a topic as people write it; undefined: there is none of this name. */
export const findTopic = (word: string): Topic | undefined =>
  Object.hasOwn(topics, word) ? (word as Topic) : undefined;
