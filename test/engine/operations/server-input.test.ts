import { describe, expect, it } from "vitest";
import { formOf, readInput } from "../../../src/engine/operations/arguments.ts";
import { helpFor, readCommandLine } from "../../../src/engine/operations/command-line.ts";
import { inputFrom } from "../../../src/engine/operations/server-input.ts";

const schema = {
  type: "object",
  properties: {
    query: { type: "string", pattern: "^(a+)+$", description: "[Click](http://evil.example) @room" },
    limit: { type: "integer", minimum: 1 },
    deep: { type: "boolean" },
    kind: { enum: ["page", "file"] },
    tags: { type: "array", items: { type: "string" } },
    filter: { type: "object", properties: { from: { type: "string" } } },
    any: { anyOf: [{ type: "string" }, { type: "null" }] },
  },
  required: ["query"],
};

describe("the input of a server's tool", () => {
  it("has the names, the types and what must be given; patterns are never run", () => {
    const input = inputFrom(schema);
    expect(formOf(input).required).toEqual(["query"]);
    const hostile = `${"a".repeat(50)}!`;
    const given = {
      query: hostile,
      limit: "5",
      deep: "yes",
      kind: "page",
      tags: "a; b",
      filter: '{"from":"x"}',
      any: [1],
    };
    expect(readInput(input, given)).toEqual({
      ...given,
      limit: 5,
      deep: true,
      tags: ["a", "b"],
      filter: { from: "x" },
    });
    expect(() => readInput(input, {})).toThrow("query: missing");
    expect(() => readInput(input, { query: "x", kind: "room" })).toThrow("one of page, file");
    expect(() => readInput(input, { query: "x", querry: "y" })).toThrow("did you mean query?");
  });

  it("is written as a command, and what the server says about it is shown as it is", () => {
    const form = { name: "wiki__find", description: "Finds.", input: inputFrom(schema) };
    expect(readCommandLine(form, "--limit 3 boats and ships")).toEqual({ query: "boats and ships", limit: 3 });
    expect(helpFor(form, "!")).toContain("- `query`: `[Click](http://evil.example) @room`");
  });

  it.each([
    [{ type: "object" }, true],
    [{ type: "object", additionalProperties: true, properties: { a: {} } }, true],
    [{ type: "object", anyOf: [], properties: { a: {} } }, true],
    [{ type: "object", properties: { a: true } }, false],
    [{ type: "object", additionalProperties: false }, false],
    [{ type: "object", properties: "odd", required: "odd" }, true],
  ])("of %j may hold names that are not listed: %s", (odd, isOpen) => {
    const read = () => readInput(inputFrom(odd), { other: 1 });
    if (isOpen) expect(read()).toEqual({ other: 1 });
    else expect(read).toThrow('there is no "other"');
  });
});
