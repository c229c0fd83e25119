import { UserError } from "../../base/lib/errors.ts";
import { type Conversation, HOME } from "../../base/lib/ids.ts";
import { appendedBytesMax } from "../tables/append.ts";
import { type WorkingName, withoutAside, workingNames } from "../tables/state-names.ts";
import { parseFacts } from "./facts.ts";
import { type FilePath, formatPath } from "./path.ts";

/** Place of a working file: behind the wall of the conversation's room, or at home of the agent's home. */
export const workingFile = ({ agent, roomId }: Conversation, name: WorkingName): FilePath =>
  roomId === HOME
    ? { share: "agents", path: `/${agent}/memory/${name}` }
    : { share: "rooms", path: `/${roomId}/agents/${agent}/memory/${name}` };

const working = new RegExp(
  `^(?:agents:/[^/]+|rooms:/[^/]+/agents/[^/]+)/memory/(${workingNames.map((name) => name.replace(".", "[.]")).join("|")})$`,
);

/** Names the working file that has this path; undefined for any other file. */
export const workingNameOf = ({ share, path }: { readonly share: string; readonly path: string }) =>
  working.exec(`${share}:${path}`)?.[1] as WorkingName | undefined;

/** Names the working file that it is, or of which it was put aside; see `putAside`. */
export const stateNameOf = ({ share, path }: { readonly share: string; readonly path: string }) =>
  workingNameOf({ share, path: withoutAside(path) });

/** File with an agent's rules, which its owner writes. */
export const rulesFile = (agent: string): FilePath => ({ share: "agents", path: `/${agent}/directives/AGENTS.md` });

/** File with all that an agent can do, which nobody writes. */
const skillsFile = (agent: string): FilePath => ({ share: "agents", path: `/${agent}/directives/SKILLS.md` });

/** Names the agent whose `directives/SKILLS.md` this is. */
export const skillsOwner = ({ share, path }: { readonly share: string; readonly path: string }): string | undefined => {
  const [, root = ""] = path.split("/");
  return share === "agents" && path === skillsFile(root).path ? root : undefined;
};

/** Names the agent of whom a file is that can be read before anybody has written it. */
export const stateOwner = (file: { readonly share: string; readonly path: string }): string | undefined => {
  const [, root, , name] = file.path.split("/");
  if (file.share === "agents" && file.path === rulesFile(root ?? "").path) return root;
  return workingNameOf(file) === undefined ? undefined : file.share === "agents" ? root : name;
};

/** Text that stands in a file before anybody has written it; undefined for most files. */
export const unwrittenText = (file: { readonly share: string; readonly path: string }): string | undefined => {
  if (stateOwner(file) === undefined) return undefined;
  const name = workingNameOf(file);
  return name ? unwritten[name] : defaultRules;
};

const unwritten: Readonly<Record<WorkingName, string>> = {
  "NOW.md": "Status: Idle\n",
  "LOG.md": "",
  "facts.json": "{}\n",
};

/**
 * Refuses a working file that could not be used.
 * @throws UserError with the reason
 */
export function checkWorkingFile(file: FilePath, text: string | null): void {
  const where = formatPath(file);
  const owner = skillsOwner(file);
  if (owner !== undefined)
    throw new UserError(
      `${where} is made from the agent's tools, and cannot be written. Change agents:/${owner}/agent.json.`,
    );
  const name = workingNameOf(file);
  if (name === undefined) return;
  if (text === null) throw new UserError(`${where} cannot be written: that is no text.`);
  if (Buffer.byteLength(text) > appendedBytesMax)
    throw new UserError(`${where} cannot be written: it would be larger than ${appendedBytesMax} bytes.`);
  if (name === "facts.json" && !parseFacts(text))
    throw new UserError(`${where} cannot be written: it must be a JSON object, such as { "language": "Danish" }.`);
}

/** The rules of an agent for which nobody has written any. */
const defaultRules = `# Memory

1. NOW.md is your current status: look at it before you answer. Does this go on with something that you have begun?
2. Keep your plan there, and not in your head: call update_status whenever you finish a step or change the plan.
3. LOG.md is what you did last: when somebody says that it did not work, look there for what you tried. log_activity adds to it.
4. Where both do not tell you, call recall_memory.
`;
