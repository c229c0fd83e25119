import { expect, it } from "vitest";
import { isIncluded, natureOf } from "../../../src/domain/servers/server-settings.ts";

const settings = {
  name: "wiki",
  door: { url: "", headers: {} },
  include: ["*"],
  timeoutMs: 1,
  isTrusted: false,
  kinds: {},
};
const definition = (hints: object) => ({ tool: "move_file", description: "", schema: {}, hints });
const trusted = { ...settings, isTrusted: true };

it.each([
  [{}, "delete", false, true],
  [{ isReadOnly: true }, "read", true, true],
  [{ isDestructive: false }, "create", false, true],
  [{ isDestructive: true, isIdempotent: true }, "delete", true, true],
  [{ isReadOnly: true, isOpenWorld: false }, "read", true, false],
] as const)(
  "believes %j of a server that the operator trusts, and of no other",
  (hints, kind, isRepeatable, isOpenWorld) => {
    expect(natureOf(trusted, definition(hints))).toEqual({ kind, isRepeatable, isOpenWorld });
    expect(natureOf(settings, definition(hints))).toEqual({ kind: "update", isRepeatable: false, isOpenWorld: true });
  },
);

it("takes the operator's word before the server's, for the kind alone", () => {
  const kinds = { move_file: "create" } as const;
  expect(natureOf({ ...trusted, kinds }, definition({ isReadOnly: true }))).toMatchObject({
    kind: "create",
    isRepeatable: true,
  });
  expect(natureOf({ ...settings, kinds }, definition({}))).toMatchObject({ kind: "create", isOpenWorld: true });
  expect(natureOf(settings, { ...definition({}), tool: "constructor" }).kind).toBe("update");
});

it.each([
  ["*", "anything", true],
  ["search_*", "search_pages", true],
  ["search_*", "research_pages", false],
  ["*_file", "move_file", true],
  ["a*b*c", "a-b-c", true],
  ["a*b*c", "abc", true],
  ["a*a", "a", false],
  ["*a*a*a*a*a*a*a*a*a*b", "a".repeat(100_000), false],
  ["move", "move_file", false],
])("the pattern %s and the name %.20s", (pattern, tool, isMatch) => {
  expect(isIncluded({ include: [pattern] }, tool)).toBe(isMatch);
});
