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

/** Offers that are remembered: an agent's changes with its settings, and with its servers. */
const offersKept = 64;

/** Tools that come and go while the bridge runs. */
export interface ToolSource {
  /** Tools that the agent has, by its settings. */
  of(agent: Agent): readonly AnyTool[];
  /** The tool of this name, whoever has it. */
  find(name: string): AnyTool | undefined;
}

const noSource: ToolSource = { of: () => [], find: () => undefined };

/** All tools there are, and which of them an agent has. */
export class Toolbox {
  readonly #tools: readonly AnyTool[];
  readonly #offers = new LRUCache<string, Offer>({ max: offersKept });
  readonly #isUsable: (tool: AnyTool) => boolean;
  readonly #source: ToolSource;

  /** @param isUsable false of a tool that can do nothing now: models are not offered it. Called, it says why. */
  constructor(tools: readonly AnyTool[], isUsable: (tool: AnyTool) => boolean = () => true, source = noSource) {
    this.#tools = tools.toSorted((a, b) => a.name.localeCompare(b.name));
    this.#isUsable = isUsable;
    this.#source = source;
  }

  /** Tools of an agent; with `names`, these tools, as a sub-agent of it has them. */
  of(agent: Agent, names?: readonly string[]): readonly AnyTool[] {
    return this.#all(agent, names).filter(this.#isUsable);
  }

  /** Tools that the agent has, whether or not they can do anything now: a call may be older. */
  #all(agent: Agent, names?: readonly string[]): readonly AnyTool[] {
    if (names) return this.withNames(names);
    const sets: readonly string[] = agent.settings.tools;
    const own = this.#tools.filter(
      ({ set, isSpareFor }) => sets.includes(set) && !(isSpareFor && sets.includes(isSpareFor)),
    );
    return [...own, ...this.#source.of(agent)];
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
    const key = [agent.suffix, ...tools.map(({ name, revision = "" }) => name + revision)].join(" ");
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
    return this.#tools.find((tool) => tool.name === name) ?? this.#source.find(name);
  }

  /** True if the model names a function whose call can be written with the thought that led to it. */
  isImmediate(agent: Agent, name: string, names?: readonly string[]): boolean {
    return this.of(agent, names).some((tool) => tool.isImmediate === true && nameFor(agent, tool) === name);
  }

  /** Tools that people may command: those of the agent, and, unless it may delegate to none, those of sub-agents. */
  findCommandable(agent: Agent): readonly AnyTool[] {
    const { subAgents, tools } = agent.settings;
    const sets: readonly string[] = [...tools, ...(subAgents?.length === 0 ? [] : subAgentSets)];
    return [...this.#tools.filter(({ set }) => sets.includes(set)), ...this.#source.of(agent)];
  }
}

const offerOf = (agent: Agent, tools: readonly AnyTool[]): Offer => {
  const definitions = tools.map((tool) => ({
    name: nameFor(agent, tool),
    description: tool.description,
    parameters: tool.schema ?? toldForm(tool.input),
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
  const known = inputs.get(tool) ?? (isLinkable(tool) ? tool.input.extend(linked) : tool.input);
  inputs.set(tool, known);
  return known;
}

/** A server may know another thing by this name. */
const isLinkable = ({ input }: AnyTool): boolean => !Object.hasOwn(input.shape, "todo");

/** A valid input, and the number of the todo that the call is linked to. */
export interface Arguments {
  readonly input: Record<string, unknown>;
  readonly todo: number | undefined;
}

/** Takes apart what is valid by `inputOf`. */
export function takeApart(tool: AnyTool, values: Record<string, unknown>): Arguments {
  if (!isLinkable(tool)) return { input: values, todo: undefined };
  const { todo, ...input } = values;
  return { input, todo: typeof todo === "number" ? todo : undefined };
}

/** Reads a model's arguments; a `UserError` names every parameter that is wrong, and why. */
export function readArguments(tool: AnyTool, json: string): Arguments {
  let value: unknown;
  try {
    // An escape such as \u0000 becomes a character only here.
    value = storableJson(JSON.parse(json));
  } catch {
    throw new UserError("The arguments are not valid JSON.");
  }
  return takeApart(tool, readInput(inputOf(tool), value));
}
