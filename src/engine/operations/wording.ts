import { UserError } from "../../base/lib/errors.ts";
import { HOME } from "../../base/lib/ids.ts";
import { isRoomId } from "../../base/lib/matrix-id.ts";
import { type FilePath, folderHere, formatPath, parsePath, rootOf, shortenPath } from "../../domain/files/path.ts";
import type { Operation } from "../../domain/tables/operations.ts";
import { lineOf, quote } from "./shown-text.ts";
import type { AnyTool } from "./tool.ts";

/** A longer value stands in the question as its beginning and end, and below it in full. */
const valueMost = 120;

/** Fields in a wording. */
const fields = /\{(\w+)(?::([^}]*))?\}/g;

type Call = Pick<Operation, "agent" | "input" | "kind" | "roomId" | "tool">;

/** A call as a person would name it, in Markdown and without a mark at its end, such as: Delete `list.md` */
export interface Wording {
  readonly text: string;
  /** Fields of the input that stand in it exactly as they are. */
  readonly said: ReadonlySet<string>;
}

/** Place in which a wording is read. */
interface WordingPlace {
  /** In the conversation's room: its paths are shown without it. */
  readonly isHere: boolean;
  /** Of other rooms, by their ids. */
  readonly names?: ReadonlyMap<string, string>;
}

/** The rooms that a call names, but for its own. */
export function roomsIn({ input, roomId }: Pick<Call, "input" | "roomId">, tool: AnyTool | undefined): string[] {
  const fields = Object.entries(input as Record<string, unknown>);
  const named = fields.flatMap(([field, value]) => {
    if (typeof value !== "string") return [];
    return field === "roomId" ? value : tool?.paths?.includes(field) ? rootOf(fileOf(value) ?? { path: "" }) : [];
  });
  return [...new Set(named.filter((id) => isRoomId(id) && id !== roomId))];
}

/**
 * Words a call for people.
 */
export function wordingOf(call: Call, tool: AnyTool | undefined, { isHere, names = new Map() }: WordingPlace): Wording {
  const input = call.input as Readonly<Record<string, unknown>>;
  const template = typeof tool?.wording === "function" ? tool.wording(input, call.kind) : tool?.wording;
  if (template === undefined) return { text: `Use ${quote(call.tool)}`, said: new Set() };
  const hasValues = [...template.matchAll(fields)].some(([, , words]) => words === undefined);
  // A redaction leaves no input.
  if (hasValues && Object.keys(input).length === 0)
    return { text: `Use ${quote(call.tool)} (the rest was redacted)`, said: new Set() };
  const said = new Set<string>();
  const fill = (field: string): string => {
    const value = input[field];
    if (typeof value !== "string") {
      const json = JSON.stringify(value) ?? "";
      if (lineOf(json, valueMost) === json) said.add(field);
      return quote(json, valueMost);
    }
    const isPath = tool?.paths?.includes(field) === true;
    if (isPath) return pathText(call, value, { isHere, names, said: () => said.add(field) });
    const name = names.get(value);
    if (name !== undefined && field === "roomId") return `the room ${quote(name)}`;
    if (lineOf(value, valueMost) === value) said.add(field);
    if (field === "roomId") return value === call.roomId && isHere ? "this room" : `the room ${quote(value)}`;
    return quote(value, valueMost);
  };
  const text = template.replace(fields, (_, field: string, words?: string) => {
    if (words === undefined) return fill(field);
    if (input[field] === true) said.add(field);
    return words;
  });
  return { text, said };
}

interface PathReader extends WordingPlace {
  /** The path is told exactly as it is written. */
  readonly said: () => void;
}

function pathText({ agent, roomId }: Call, written: string, { isHere, names = new Map(), said }: PathReader): string {
  const file = fileOf(written);
  if (file === undefined) return quote(written, valueMost);
  const name = names.get(rootOf(file));
  const [, , ...below] = file.path.split("/");
  if (name !== undefined && below.length === 0) return `all files of the room ${quote(name)}`;
  if (name !== undefined) return `${quote(below.join("/"), valueMost)} of the room ${quote(name)}`;
  const whole = formatPath(file);
  const shown = isHere ? shortenPath(folderHere(agent, roomId), file) : whole;
  if (whole === written && lineOf(whole, valueMost) === whole) said();
  return shown === "." ? `all files of ${roomId === HOME ? "my own" : "this room"}` : quote(shown, valueMost);
}

/** Undefined for what is no path: it is refused when it is used. */
function fileOf(path: string): FilePath | undefined {
  try {
    return parsePath(path);
  } catch (error) {
    if (error instanceof UserError) return undefined;
    throw error;
  }
}
