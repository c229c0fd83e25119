import { UserError } from "../../base/lib/errors.ts";
import type { RoomId } from "../../base/lib/ids.ts";
import type { Element } from "../../base/lmml/element.ts";
import type { WindowState } from "../../base/prompt/types.ts";
import { clamp, heightMax } from "../../base/prompt/viewport.ts";

export const windowActions = [
  "scroll",
  "goto",
  "resize",
  "maximize",
  "minimize",
  "restore",
  "pin",
  "unpin",
  "refresh",
  "query",
  "close",
] as const;
export type WindowAction = (typeof windowActions)[number];

/** Result of an operation on a window. */
export interface Outcome {
  readonly said: string;
  /** The window as it is now. */
  readonly shown?: Element | undefined;
  readonly sources: readonly RoomId[];
  /** Untrusted texts that what is said was made from. */
  readonly taint: readonly string[];
  /** Images that the caller sees beside it. */
  readonly images?: readonly { readonly label: string; readonly bytes: Buffer }[] | undefined;
}

/** State of a window that its reader can change. */
export interface Pose {
  readonly state: WindowState;
  readonly isPinned: boolean;
  readonly top: number;
  readonly height: number;
}

const whole = (argument: string, expected: string): number => {
  if (/^[+-]?\d{1,9}$/.test(argument)) return Number(argument);
  throw new UserError(`The argument must be ${expected}.`);
};

/**
 * Computes how a window stands after an action; actions that do not move it leave it as it is.
 * @param bottom the last line that is shown now
 */
export const pose = (
  before: Pose,
  { action, argument }: { readonly action: WindowAction; readonly argument: string },
  { lines, bottom }: { readonly lines: number; readonly bottom: number },
): Pose => {
  const { top, height } = before;
  const seen = before.state === "minimized" ? ({ ...before, state: "normal" } as const) : before;
  const at = (line: number, rows = height) => ({ ...seen, ...clamp({ top: line, height: rows }, lines) });
  switch (action) {
    case "scroll":
      if (argument === "") return at(bottom + 1);
      return at(top + whole(argument, "a number of lines, such as 20, or -20 to go up; without it, to the next page"));
    case "goto":
      return at(argument === "end" ? lines : whole(argument, "the number of a line, or end"));
    case "resize": {
      const expected = `a number of lines from 1 to ${heightMax}`;
      const rows = whole(argument, expected);
      if (rows < 1 || rows > heightMax) throw new UserError(`The argument must be ${expected}.`);
      return at(top, rows);
    }
    case "maximize":
      return { ...before, state: "maximized", top: 1 };
    case "minimize":
      return { ...before, state: "minimized" };
    case "restore":
      return { ...before, state: "normal" };
    case "pin":
      return { ...before, isPinned: true };
    case "unpin":
      return { ...before, isPinned: false };
    default:
      return before;
  }
};
