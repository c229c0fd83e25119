import { isObject } from "../../base/lib/json.ts";

/** Facts of a `facts.json`: values by their names, in the order in which they were set. */
export type Facts = ReadonlyMap<string, unknown>;

/** Reads a `facts.json`; undefined where it is none. */
export const parseFacts = (text: string): Facts | undefined => {
  try {
    const value: unknown = JSON.parse(text.trim() === "" ? "{}" : text);
    return isObject(value) ? new Map(Object.entries(value)) : undefined;
  } catch {
    return undefined;
  }
};

/** Reads the facts that can be read, line by line, of a file in which a line was blanked or damaged. */
export const salvageFacts = (text: string): Facts =>
  new Map(text.split("\n").flatMap((line) => [...(parseFacts(`{${line.trim().replace(/,$/, "")}}`) ?? new Map())]));

/** The text of a `facts.json`: a line for each fact. */
export const factsText = (facts: Facts): string =>
  facts.size === 0
    ? "{}\n"
    : `{\n${[...facts].map(([key, value]) => `  ${JSON.stringify(key)}: ${JSON.stringify(value)}`).join(",\n")}\n}\n`;
