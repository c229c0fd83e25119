import type { AgentName } from "../../base/lib/ids.ts";
import type { AgentDirectory } from "../../domain/agents/agent.ts";
import { type Agent, keepsState } from "../../domain/agents/agent.ts";
import type { UnwrittenText } from "../../domain/files/unwritten.ts";
import { skillsOwner, stateOwner, unwrittenText } from "../../domain/files/working-files.ts";
import type { AnyTool } from "./tool.ts";
import type { Toolbox } from "./toolbox.ts";

/** Texts of working files and directives that nobody has written, of agents that keep any. */
export const unwrittenTexts =
  (toolbox: Pick<Toolbox, "of">, agents: Pick<AgentDirectory, "findRecent">): UnwrittenText =>
  async (file) => {
    const name = skillsOwner(file) ?? stateOwner(file);
    const agent = name === undefined ? undefined : await agents.findRecent(name as AgentName);
    if (!agent || !keepsState(agent)) return undefined;
    return skillsOwner(file) === undefined ? unwrittenText(file) : skillsText(agent, toolbox.of(agent));
  };

const skillsText = ({ name }: Agent, tools: readonly AnyTool[]): string =>
  `# What ${name} can do

Made from its tools, which its agent.json names.

${tools.map((tool) => `- **${tool.name}**: ${tool.description.replace(/\s+/g, " ")}`).join("\n")}
`;
