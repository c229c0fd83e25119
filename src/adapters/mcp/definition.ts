import { isObject } from "../../base/lib/json.ts";
import { toStorable } from "../../base/lib/storable.ts";
import { visible } from "../../base/lmml/visible.ts";

/** A tool as its server describes it, cleaned: everything in it is text of the server's, and of limited length. */
export interface ServerDefinition {
  /** Name by which the server knows it. */
  readonly tool: string;
  readonly description: string;
  /** JSON Schema of its arguments. */
  readonly schema: Readonly<Record<string, unknown>>;
  /** Claims of the server about the tool. */
  readonly hints: {
    readonly isReadOnly?: boolean;
    readonly isDestructive?: boolean;
    readonly isIdempotent?: boolean;
    readonly isOpenWorld?: boolean;
  };
}

/** Tools of a server by their names behind the server's, and those that cannot be used, with the reason. */
export interface Definitions {
  readonly tools: ReadonlyMap<string, ServerDefinition>;
  readonly leftOut: readonly { readonly tool: string; readonly why: string }[];
}

/** A tool as it was listed. */
export interface ListedTool {
  readonly name: string;
  readonly description?: string | undefined;
  readonly inputSchema: unknown;
  readonly annotations?: Readonly<Record<string, unknown>> | undefined;
}

/** Longest name that providers of models take, with the suffix of an agent. */
const nameMost = 64;
const suffixMost = 8;
const descriptionMost = 1_000;
const schemaCharsMost = 8_000;
const schemaDepthMost = 12;
const toolsMost = 100;
/** Left-out tools that are told. */
const toldMost = 100;

/**
 * Cleans what a server lists. Names keep the characters that every model takes; of two tools that would have one name, the
 * first has it. Patterns in schemas are texts for models, and are never run.
 */
export function readDefinitions(server: string, listed: readonly ListedTool[]): Definitions {
  const tools = new Map<string, ServerDefinition>();
  const leftOut: { tool: string; why: string }[] = [];
  for (const one of listed) {
    const name = nameFor(server, one.name);
    const why = obstacle(one, name, tools);
    if (why === undefined) tools.set(name, definitionOf(one));
    else if (leftOut.length < toldMost) leftOut.push({ tool: shown(one.name), why });
  }
  return { tools, leftOut };
}

/** Name of a server's tool among all tools. */
export const joinedName = (server: string, name: string): string => `${server}__${name}`;

const nameFor = (server: string, tool: string): string =>
  tool
    .slice(0, 1_000)
    .replace(/[^A-Za-z0-9_-]+/g, "_")
    .slice(0, nameMost - suffixMost - 1 - joinedName(server, "").length);

const shown = (text: string): string => visible(toStorable(text.slice(0, 80)));

function obstacle({ name: tool, inputSchema }: ListedTool, name: string, known: Definitions["tools"]) {
  if (!/[A-Za-z0-9]/.test(name)) return "its name has no letter";
  if (toStorable(tool) !== tool || tool.length > 1_000) return "its name cannot be kept";
  if (known.has(name)) return `another tool is called ${name} already`;
  if (known.size >= toolsMost) return `a server may have ${toolsMost} tools`;
  return schemaObstacle(inputSchema);
}

function schemaObstacle(schema: unknown): string | undefined {
  if (!isObject(schema) || depthOf(schema) > schemaDepthMost) return "the schema of its arguments is nested too deep";
  if (JSON.stringify(schema).length > schemaCharsMost)
    return `the schema of its arguments has more than ${schemaCharsMost} characters`;
  if (!keysIn(schema).every((key) => key.length <= 200 && key !== "__proto__" && visible(toStorable(key)) === key))
    return "the schema of its arguments has names that cannot be shown";
  const { properties = {} } = schema;
  if (!isObject(properties)) return "the schema of its arguments names none";
  if (!Object.keys(properties).every((name) => /^[A-Za-z_$][\w$.-]{0,63}$/.test(name)))
    return "its arguments have names that models do not take";
  return undefined;
}

/** Counts levels, up to one more than may be. */
const depthOf = (value: unknown, level = 0): number =>
  typeof value !== "object" || value === null || level > schemaDepthMost
    ? level
    : Object.values(value).reduce<number>((deepest, inner) => Math.max(deepest, depthOf(inner, level + 1)), level);

const keysIn = (value: unknown): string[] => {
  if (typeof value !== "object" || value === null) return [];
  const own = Array.isArray(value) ? [] : Object.keys(value);
  return [...own, ...Object.values(value).flatMap(keysIn)];
};

const cleaned = (value: unknown): unknown => {
  if (typeof value === "string") return visible(toStorable(value));
  if (Array.isArray(value)) return value.map(cleaned);
  return isObject(value)
    ? Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, cleaned(inner)]))
    : value;
};

function definitionOf({ name: tool, description = "", inputSchema, annotations = {} }: ListedTool): ServerDefinition {
  const { $schema: _, $id: __, ...schema } = cleaned(inputSchema) as Record<string, unknown>;
  const hint = (key: string, name: string) => {
    const value = annotations[key];
    return typeof value === "boolean" ? { [name]: value } : {};
  };
  return {
    tool,
    description: toStorable(visible(description.slice(0, descriptionMost).trim()).slice(0, descriptionMost)),
    schema,
    hints: {
      ...hint("readOnlyHint", "isReadOnly"),
      ...hint("destructiveHint", "isDestructive"),
      ...hint("idempotentHint", "isIdempotent"),
      ...hint("openWorldHint", "isOpenWorld"),
    },
  };
}
