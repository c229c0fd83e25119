import { z } from "zod";
import { UserError } from "../lib/errors.ts";
import { storableJson } from "../lib/storable.ts";
import type { ToolDefinition } from "../model/request.ts";
import type { Agent } from "./agent.ts";
import type { AnyTool } from "./tool.ts";

/** All tools there are, and which of them an agent has. */
export class Toolbox {
  readonly #tools: readonly AnyTool[];
  readonly #schemas: ReadonlyMap<AnyTool, ToolDefinition["parameters"]>;

  constructor(tools: readonly AnyTool[]) {
    this.#tools = tools.toSorted((a, b) => a.name.localeCompare(b.name));
    this.#schemas = new Map(this.#tools.map((tool) => [tool, z.toJSONSchema(tool.input)]));
  }

  /** What an agent has; with `names`, these tools, as its sub-agents have them. */
  of(agent: Agent, names?: readonly string[]): readonly AnyTool[] {
    return this.#tools.filter((tool) => (names ? names.includes(tool.name) : agent.settings.tools.includes(tool.set)));
  }

  /** What the model is offered: names carry the agent's suffix, which never changes. */
  definitions(agent: Agent, names?: readonly string[]): ToolDefinition[] {
    return this.of(agent, names).map((tool) => ({
      name: nameFor(agent, tool),
      description: tool.description,
      parameters: this.#schemas.get(tool) ?? {},
    }));
  }

  /** The tool that a model means by a name with suffix; a `UserError` that lists what there is otherwise. */
  called(agent: Agent, name: string, names?: readonly string[]): AnyTool {
    const tool = this.of(agent, names).find((candidate) => nameFor(agent, candidate) === name);
    if (tool) return tool;
    const known = this.of(agent, names).map((candidate) => nameFor(agent, candidate));
    throw new UserError(`There is no function ${name}. Functions: ${known.join(", ")}`);
  }

  /** Whether the function that a model names is one whose call can be written with the thought that led to it. */
  isImmediate(agent: Agent, name: string, names?: readonly string[]): boolean {
    return this.of(agent, names).some((tool) => tool.immediate === true && nameFor(agent, tool) === name);
  }

  byCommand(agent: Agent, word: string): AnyTool | undefined {
    return this.of(agent).find((tool) => tool.command === word);
  }
}

const nameFor = (agent: Agent, tool: AnyTool): string => `${tool.name}_${agent.suffix}`;

/** Reads a model's arguments; a `UserError` names every parameter that is wrong, and why. */
export function readArguments(tool: AnyTool, json: string): Record<string, unknown> {
  let value: unknown;
  try {
    // An escape such as \u0000 becomes a character only here.
    value = storableJson(JSON.parse(json));
  } catch {
    throw new UserError("The arguments are not valid JSON.");
  }
  return validate(tool, value);
}

function validate(tool: AnyTool, value: unknown): Record<string, unknown> {
  const read = z.strictObject(tool.input.shape).safeParse(value);
  if (read.success) return read.data as Record<string, unknown>;
  throw new UserError(
    read.error.issues.map((issue) => `${issue.path.join(".") || "arguments"}: ${issue.message}`).join("\n"),
  );
}
