import { LRUCache } from "lru-cache";
import { z } from "zod";
import type { ToolDefinition } from "../../adapters/model/types.ts";
import { UserError } from "../../base/lib/errors.ts";
import { digest } from "../../base/lib/ids.ts";
import { storableJson } from "../../base/lib/storable.ts";
import type { Agent } from "../../domain/agents/agent.ts";
import { subAgentSets, type ToolSet } from "../../domain/agents/settings.ts";
import { readInput, toldForm } from "./arguments.ts";
import type { AnyTool } from "./tool.ts";

/** The tools that a model is offered. */
export interface Offer {
  readonly definitions: readonly ToolDefinition[];
  /** Offer as people read it, and a name for this text. */
  readonly text: string;
  readonly hash: string;
}

/** Offers that are remembered: an agent's changes with its settings alone. */
const offersKept = 64;

/** All tools there are, and which of them an agent has. */
export class Toolbox {
  readonly #tools: readonly AnyTool[];
  readonly #offers = new LRUCache<string, Offer>({ max: offersKept });
  readonly #isUsable: (tool: AnyTool) => boolean;

  /** @param isUsable false of a tool that can do nothing now: models are not offered it. Called, it says why. */
  constructor(tools: readonly AnyTool[], isUsable: (tool: AnyTool) => boolean = () => true) {
    this.#tools = tools.toSorted((a, b) => a.name.localeCompare(b.name));
    this.#isUsable = isUsable;
  }

  /** Tools of an agent; with `names`, these tools, as a sub-agent of it has them. */
  of(agent: Agent, names?: readonly string[]): readonly AnyTool[] {
    return this.#all(agent, names).filter(this.#isUsable);
  }

  /** Tools that the agent has, whether or not they can do anything now: a call may be older. */
  #all({ settings: { tools: sets } }: Agent, names?: readonly string[]): readonly AnyTool[] {
    if (names) return this.withNames(names);
    return this.#tools.filter(
      ({ set, isSpareFor }) => sets.includes(set) && !(isSpareFor && sets.includes(isSpareFor)),
    );
  }

  /** True if the agent is offered tools of this set. */
  offersSet(agent: Agent, set: ToolSet): boolean {
    return this.of(agent).some((tool) => tool.set === set);
  }

  /** Finds the tools of these names; unknown names are left out. */
  withNames(names: readonly string[]): readonly AnyTool[] {
    return this.#tools.filter((tool) => names.includes(tool.name));
  }

  get names(): readonly string[] {
    return this.#tools.map((tool) => tool.name);
  }

  /** Definitions that the model is offered: names carry the agent's suffix, which never changes. */
  offer(agent: Agent, names?: readonly string[]): Offer {
    const tools = this.of(agent, names);
    const key = [agent.suffix, ...tools.map(({ name }) => name)].join(" ");
    const known = this.#offers.get(key);
    if (known) return known;
    const offer = offerOf(agent, tools);
    this.#offers.set(key, offer);
    return offer;
  }

  /** The tool that a model means by a name with suffix; a `UserError` that lists what there is otherwise. */
  byName(agent: Agent, name: string, names?: readonly string[]): AnyTool {
    const tool = this.#all(agent, names).find((candidate) => nameFor(agent, candidate) === name);
    if (tool) return tool;
    const known = this.of(agent, names).map((candidate) => nameFor(agent, candidate));
    throw new UserError(`There is no function ${name}. Functions: ${known.join(", ")}`);
  }

  /** The tool of this name, whoever has it. */
  find(name: string): AnyTool | undefined {
    return this.#tools.find((tool) => tool.name === name);
  }

  /** True if the model names a function whose call can be written with the thought that led to it. */
  isImmediate(agent: Agent, name: string, names?: readonly string[]): boolean {
    return this.of(agent, names).some((tool) => tool.isImmediate === true && nameFor(agent, tool) === name);
  }

  /** Tools that people may command: those of the agent, and, unless it may delegate to none, those of sub-agents. */
  findCommandable({ settings }: Agent): readonly AnyTool[] {
    const lent: readonly string[] = settings.subAgents?.length === 0 ? [] : subAgentSets;
    return this.#tools.filter(({ set }) => settings.tools.includes(set) || lent.includes(set));
  }
}

const offerOf = (agent: Agent, tools: readonly AnyTool[]): Offer => {
  const definitions = tools.map((tool) => ({
    name: nameFor(agent, tool),
    description: tool.description,
    parameters: toldForm(tool.input),
  }));
  const text = JSON.stringify(definitions, undefined, 1);
  return { definitions, text, hash: digest("toolset", text) };
};

const nameFor = (agent: Agent, tool: AnyTool): string => `${tool.name}_${agent.suffix}`;

/** Fields that every call may have beside the tool's own input. */
const linked = {
  todo: z.int32().min(1).optional().describe("Number of the todo that it is for"),
};

const inputs = new WeakMap<AnyTool, z.ZodObject>();

/** The tool's own input, and what every call may say beside it. */
export function inputOf(tool: AnyTool): z.ZodObject {
  const known = inputs.get(tool) ?? z.object({ ...tool.input.shape, ...linked });
  inputs.set(tool, known);
  return known;
}

/** A valid input, and the number of the todo that the call is linked to. */
export interface Arguments {
  readonly input: Record<string, unknown>;
  readonly todo: number | undefined;
}

/** Takes apart what is valid by `inputOf`. */
export const takeApart = ({ todo, ...input }: Record<string, unknown>): Arguments => ({
  input,
  todo: typeof todo === "number" ? todo : undefined,
});

/** Reads a model's arguments; a `UserError` names every parameter that is wrong, and why. */
export function readArguments(tool: AnyTool, json: string): Arguments {
  let value: unknown;
  try {
    // An escape such as \u0000 becomes a character only here.
    value = storableJson(JSON.parse(json));
  } catch {
    throw new UserError("The arguments are not valid JSON.");
  }
  return takeApart(readInput(inputOf(tool), value));
}
