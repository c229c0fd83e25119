import { RE2JS } from "re2js";
import { UserError } from "../../base/lib/errors.ts";
import { parsePath, type ShareName } from "./path.ts";

/** A pattern of paths in one share. */
export interface Glob {
  readonly share: ShareName;
  /** The innermost folder (or the one file) that everything which fits is, or is below. */
  readonly base: string;
  /** Names one path and no other. */
  readonly isLiteral: boolean;
  readonly fits: (path: string) => boolean;
}

const special = /[*?[\]{}]/;

/**
 * Reads `share:/…` with `*` and `?` within a part, `**` for any number of parts, `[a-z]`, `[!a-z]` and `{one,other}`.
 * Takes time in proportion to the length of a path, whatever the pattern is.
 */
export function parseGlob(text: string): Glob {
  const { share, path } = parsePath(text);
  const parts = path.split("/").slice(1);
  const first = parts.findIndex((part) => special.test(part));
  if (first < 0) return { share, base: path, isLiteral: true, fits: (other) => other === path };
  const pattern = compile(path, text);
  return {
    share,
    base: `/${parts.slice(0, first).join("/")}`,
    isLiteral: false,
    fits: (other) => pattern.testExact(other),
  };
}

function compile(glob: string, text: string): RE2JS {
  try {
    return RE2JS.compile(toRegex(glob), RE2JS.DOTALL);
  } catch {
    throw new UserError(`${JSON.stringify(text)} is no pattern of paths: look at its brackets and braces.`);
  }
}

const token = /\/\*\*(?=\/|$)|\*+|\?|\[!?\]?[^\]/]*\]|[{},]|./gsu;

function toRegex(glob: string): string {
  let depth = 0;
  let regex = "";
  for (const [found] of glob.matchAll(token)) {
    if (found === "/**") regex += "(?:/[^/]+)*";
    else if (found.startsWith("*")) regex += "[^/]*";
    else if (found === "?") regex += "[^/]";
    else if (found.length > 1) regex += classOf(found);
    else if (found === "{") {
      depth++;
      regex += "(?:";
    } else if (found === "}" && depth > 0) {
      depth--;
      regex += ")";
    } else regex += found === "," && depth > 0 ? "|" : RE2JS.quote(found);
  }
  return regex;
}

const classOf = (found: string): string => {
  const isNegated = found.startsWith("[!");
  const members = found.slice(isNegated ? 2 : 1, -1).replace(/[\\[\]^&~]/g, "\\$&");
  return `[${isNegated ? "^/" : ""}${members}]`;
};
