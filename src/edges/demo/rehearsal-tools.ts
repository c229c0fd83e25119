import { z } from "zod";
import type { OfferedTool } from "./openai-wire.ts";

const schemaOf = z.object({
  properties: z.record(z.string(), z.looseObject({})).default({}),
  required: z.array(z.string()).default([]),
});
const typesOf = z.object({
  type: z.union([z.string().transform((type) => [type]), z.array(z.string())]).default([]),
  get anyOf() {
    return z.array(typesOf).default([]);
  },
});

/** The name of a tool without the agent's suffix: `SendMessage` for `SendMessage_k3f9`. */
export const baseName = (name: string): string => name.replace(/_[^_]+$/, "");

/** The offered tool that somebody calls by its name, with or without the suffix, in any case. */
export const findTool = (tools: readonly OfferedTool[], name: string): OfferedTool | undefined => {
  const wanted = name.toLowerCase();
  return tools.find((tool) => [tool.name, baseName(tool.name)].some((known) => known.toLowerCase() === wanted));
};

export const takes = ({ parameters }: OfferedTool, parameter: string): boolean =>
  parameter in schemaOf.parse(parameters).properties;

/** One line for people: name, parameters, the first sentence of the description. */
export const usageLine = ({ name, description, parameters }: OfferedTool): string => {
  const { properties, required } = schemaOf.parse(parameters);
  const names = Object.keys(properties).map((property) => (required.includes(property) ? property : `${property}?`));
  return `- \`${[baseName(name), ...names].join(" ")}\`: ${description.split(/(?<=\.)\s/)[0]}`;
};

/** Text by which the rehearsal is asked to use a tool. */
export const exampleOf = ({ name, parameters }: OfferedTool): string => {
  const { required } = schemaOf.parse(parameters);
  return ["use", baseName(name), ...required.map((parameter) => `${parameter}=…`)].join(" ");
};

/** A value as its JSON Schema wants it; text that does not fit stays text, so that the tool itself can say what is wrong. */
const coerce = (text: string, schema: unknown): unknown => {
  const { type, anyOf } = typesOf.parse(schema ?? {});
  const types = [...type, ...anyOf.flatMap((option) => option.type)];
  if (types.length === 0 || types.includes("string")) return text;
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
};

export const unquote = (text: string): string => (/^(["'`]).*\1$/s.test(text) ? text.slice(1, -1) : text);

/** Reads `name=value other="more words"`; an unquoted value reaches to the next name. */
export const readPairs = (text: string, tool: OfferedTool): Record<string, unknown> => {
  const { properties } = schemaOf.parse(tool.parameters);
  const pairs = text.matchAll(/(\w+)=("[^"]*"|'[^']*'|`[^`]*`|.*?)(?=\s+\w+=|\s*$)/gs);
  return Object.fromEntries(
    [...pairs].map(([, name = "", value = ""]) => [name, coerce(unquote(value), properties[name])]),
  );
};
