import type { ServerDefinition } from "../../adapters/mcp/definition.ts";
import type { Mode } from "../agents/settings.ts";
import type { ServerProgram } from "./server-computers.ts";

type ServerToolKind = Exclude<Mode, "none">;

/** A server of tools, as the operator has configured it. */
export interface ServerSettings {
  readonly name: string;
  /** Its address; or the program that it is, which runs in a sandbox of its own. */
  readonly door:
    | { readonly url: string; readonly headers: Readonly<Record<string, string>> }
    | Omit<ServerProgram, "name">;
  /** Patterns of the tools that agents may have, with `*` for any characters. */
  readonly include: readonly string[];
  readonly timeoutMs: number;
  /** The operator believes what the server says about its tools. */
  readonly isTrusted: boolean;
  /** Kinds of tools as the operator has set them, by the names that the server gives them. */
  readonly kinds: Readonly<Record<string, ServerToolKind>>;
}

/** Nature of a tool, for the gate. */
export interface ServerToolNature {
  readonly kind: ServerToolKind;
  /** It may run again after a death of the process. */
  readonly isRepeatable: boolean;
  /** Its arguments may go on from the server to anywhere. */
  readonly isOpenWorld: boolean;
}

/** Decides about the nature of a tool. Claims of its server count only where the operator trusts it. */
export function natureOf(settings: ServerSettings, { tool, hints }: ServerDefinition): ServerToolNature {
  const { isReadOnly = false, isDestructive = true, isIdempotent = false, isOpenWorld = true } = hints;
  const { isTrusted, kinds } = settings;
  const claimed = isReadOnly ? "read" : isDestructive ? "delete" : "create";
  return {
    kind: Object.hasOwn(kinds, tool) ? (kinds[tool] ?? "update") : isTrusted ? claimed : "update",
    isRepeatable: isTrusted && (isReadOnly || isIdempotent),
    isOpenWorld: !isTrusted || isOpenWorld,
  };
}

/** True if agents may have the tool of this name. */
export const isIncluded = ({ include }: Pick<ServerSettings, "include">, tool: string): boolean =>
  include.some((pattern) => matches(pattern.split("*"), tool));

/** Takes the shortest match of each part between the stars, the first and the last at their ends. */
function matches(parts: readonly string[], text: string): boolean {
  const [first = "", ...rest] = parts;
  const last = rest.pop();
  if (last === undefined) return text === first;
  if (!text.startsWith(first) || text.length < first.length + last.length || !text.endsWith(last)) return false;
  let at = first.length;
  for (const part of rest) {
    const found = text.indexOf(part, at);
    if (found < 0) return false;
    at = found + part.length;
  }
  return at <= text.length - last.length;
}
