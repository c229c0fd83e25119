import { isRoomId } from "../../base/lib/matrix-id.ts";
import { folderHere, rootOf, shownIn } from "../../domain/files/path.ts";
import type { Operation } from "../../domain/tables/operations.ts";
import { lineOf, quoted } from "./shown-text.ts";
import type { AnyTool } from "./tool.ts";

/** A longer value stands in the question as its beginning and end, and below it in full. */
const valueMost = 120;

type Call = Pick<Operation, "agent" | "input" | "kind" | "roomId" | "tool">;

/** A call as a person would name it, in Markdown and without a mark at its end, such as: Delete `list.md` */
export interface Wording {
  readonly text: string;
  /** Fields of the input that stand in it exactly as they are. */
  readonly said: ReadonlySet<string>;
}

/** The rooms that a call names, but for its own. */
export function roomsIn({ input, roomId }: Pick<Call, "input" | "roomId">, tool: AnyTool | undefined): string[] {
  const fields = Object.entries(input as Record<string, unknown>);
  const named = fields.flatMap(([field, value]) => {
    if (typeof value !== "string") return [];
    return field === "roomId" ? value : tool?.paths?.includes(field) ? rootOf(partsOf(value)) : [];
  });
  return [...new Set(named.filter((id) => isRoomId(id) && id !== roomId))];
}

/**
 * Words a call for people.
 * @param isHere whether they read it in the conversation's room: its paths are then shown without it
 * @param names of other rooms, by their ids
 */
export function wordingOf(
  call: Call,
  tool: AnyTool | undefined,
  { isHere, names = new Map() }: { readonly isHere: boolean; readonly names?: ReadonlyMap<string, string> },
): Wording {
  const input = call.input as Readonly<Record<string, unknown>>;
  const template = typeof tool?.wording === "function" ? tool.wording(input, call.kind) : tool?.wording;
  if (template === undefined) return { text: `Use ${quoted(call.tool)}`, said: new Set() };
  const said = new Set<string>();
  const fill = (field: string): string => {
    const value = input[field];
    if (typeof value !== "string") {
      const json = JSON.stringify(value) ?? "";
      if (lineOf(json, valueMost) === json) said.add(field);
      return quoted(json, valueMost);
    }
    const isPath = tool?.paths?.includes(field) === true;
    const name = names.get(isPath ? rootOf(partsOf(value)) : value);
    if (name !== undefined && isPath)
      return `${quoted(value.split("/").slice(2).join("/"), valueMost)} of ${quoted(name)}`;
    if (name !== undefined && field === "roomId") return quoted(name);
    if (lineOf(value, valueMost) === value) said.add(field);
    const shown = isPath && isHere ? shownIn(folderHere(call.agent, call.roomId), partsOf(value)) : value;
    return quoted(shown, valueMost);
  };
  const text = template.replace(/\{(\w+)\}/g, (_, field: string) => fill(field));
  return { text, said };
}

/** A path from its share on, taken apart as it is written. */
const partsOf = (path: string) => {
  const colon = path.indexOf(":");
  return { share: path.slice(0, Math.max(colon, 0)), path: path.slice(colon + 1) };
};
