import { expect, describe as group, it } from "vitest";
import { tool as tree } from "../../../src/edges/tools/fs-tree.ts";
import { tool as sendMessage } from "../../../src/edges/tools/send-message.ts";
import { tool as listTodos } from "../../../src/edges/tools/todos-list.ts";
import { describe } from "../../../src/engine/operations/operation.ts";
import type { AnyTool } from "../../../src/engine/operations/tool.ts";

const summaryOf = (tool: AnyTool, input: Record<string, unknown>): string =>
  describe({ tool, input, todo: undefined }, "read", { key: "key", requesters: [] }).summary;

group("an operation in one line", () => {
  it("is what a command would give by position", () => {
    expect(summaryOf(sendMessage, { roomId: "!a:test", final: true, content: "Good morning" })).toBe("Good morning");
    expect(summaryOf(tree, { depth: 3, path: "rooms:/!a:test" })).toBe("rooms:/!a:test");
  });

  it("is all of an input of which a command gives nothing by position", () => {
    expect(summaryOf(tree, { depth: 3 })).toBe("3");
    expect(summaryOf(listTodos, {})).toBe("");
  });

  it("has one line, of 160 characters at most", () => {
    const summary = summaryOf(sendMessage, { content: `a\n b\t${"c".repeat(1_000)}` });
    expect(summary).toHaveLength(160);
    expect(summary).toMatch(/^a b c+…$/);
  });
});
