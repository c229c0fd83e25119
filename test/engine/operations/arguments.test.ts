import { expect, it } from "vitest";
import { z } from "zod";
import { UserError } from "../../../src/base/lib/errors.ts";
import { readInput } from "../../../src/engine/operations/arguments.ts";

const input = z.object({
  text: z.string().min(1).max(5).describe("A word").optional(),
  count: z.int().min(1).max(20).default(3),
  ratio: z.number().optional(),
  loud: z.boolean().optional(),
  size: z.enum(["small", "large"]).optional(),
  names: z.array(z.string().trim().min(1)).max(3).optional(),
  lines: z.array(z.int()).optional(),
});
const read = (written: unknown) => readInput(input, written);

it.each<[string, unknown, Record<string, unknown>]>([
  ["values as they are", { text: "5", count: 5, loud: true }, { text: "5", count: 5, loud: true }],
  ["what is not said as its default", {}, { count: 3 }],
  ["null as nothing", { text: null, count: null, names: null }, { count: 3 }],
  ["a whole number", { count: " 7 " }, { count: 7 }],
  ["a number", { ratio: "-0.5" }, { ratio: -0.5, count: 3 }],
  ["yes and no", { loud: "No" }, { loud: false, count: 3 }],
  ["a list with semicolons", { names: "a; b b ;;c" }, { names: ["a", "b b", "c"], count: 3 }],
  ["a list in lines", { names: "a\nb, c" }, { names: ["a", "b, c"], count: 3 }],
  ["a list as JSON", { names: '["a; b", "c"]' }, { names: ["a; b", "c"], count: 3 }],
  ["a list of numbers", { lines: "1; 2" }, { lines: [1, 2], count: 3 }],
])("reads %s", (_what, written, values) => {
  expect(read(written)).toEqual(values);
});

it.each<[unknown, string]>([
  [{ count: "many" }, 'count: found "many", expected a whole number from 1 to 20'],
  [{ count: 21 }, "count: found 21, expected a whole number from 1 to 20"],
  [{ count: "1e1" }, 'count: found "1e1", expected a whole number from 1 to 20'],
  [{ constructor: null }, 'arguments: there is no "constructor"'],
  [{ ratio: true }, "ratio: found true, expected a number"],
  [{ text: "too long" }, 'text: found "too long", expected a text of up to 5 characters: A word'],
  [{ loud: "constructor" }, 'loud: found "constructor", expected true or false'],
  [{ size: "huge" }, 'size: found "huge", expected one of small, large'],
  [{ names: "a;b;c;d" }, "names: found a list, expected a list with semicolons between, each a text"],
  [{ lines: "1;x" }, 'lines[1]: found "x", expected a whole number'],
  [{ cuont: 1 }, 'arguments: there is no "cuont", did you mean count?'],
  [{ other: 1 }, 'arguments: there is no "other", there are: text, count'],
  ["text", 'arguments: found "text", expected values by their names'],
  [undefined, "arguments: missing, expected values by their names"],
])("says what is wrong with %j", (written, problem) => {
  expect(() => read(written)).toThrow(UserError);
  expect(() => read(written)).toThrow(problem);
});
