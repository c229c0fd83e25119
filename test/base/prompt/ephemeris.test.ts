import fc from "fast-check";
import MarkdownIt from "markdown-it";
import { expect, test } from "vitest";
import { element } from "../../../src/base/lmml/element.ts";
import { render } from "../../../src/base/lmml/render.ts";
import {
  functionCall,
  functionResult,
  systemEvent,
  thought,
  thoughtsRoomText,
} from "../../../src/base/prompt/ephemeris.ts";
import { hostileText } from "../../support/hostile-text.ts";

const at = new Date("2024-12-25T12:00:00Z");

test("a thought has its time and its text", () => {
  expect(render(thought(at, "Look first."))).toBe('<thought timestamp="2024-12-25T12:00:00Z">Look first.</thought>');
});

test("a call shows texts as they are and other values as JSON", () => {
  const call = functionCall("fc1", "Tool_abc123", { text: '"quoted"', count: 3, flag: false, list: ["a"], none: null });
  expect(render(call)).toBe(
    [
      '<functionCall id="fc1" function="Tool_abc123">',
      '  <parameter name="text">"quoted"</parameter>',
      '  <parameter name="count">3</parameter>',
      '  <parameter name="flag">false</parameter>',
      '  <parameter name="list">["a"]</parameter>',
      '  <parameter name="none">null</parameter>',
      "</functionCall>",
    ].join("\n"),
  );
});

test("a result holds a text or an element", () => {
  expect(render(functionResult("fc1", "done"))).toBe(
    '<functionResult id="fc1">\n  <result>done</result>\n</functionResult>',
  );
  expect(render(functionResult("fc1", element("todo", {}, "tea")))).toContain(
    "<result>\n    <todo>tea</todo>\n  </result>",
  );
});

test("a system event has its time and its text", () => {
  expect(render(systemEvent(at, "The end."))).toBe(
    '<systemEvent timestamp="2024-12-25T12:00:00Z">The end.</systemEvent>',
  );
});

test("the thoughts room shows thoughts after the name, and calls and results as code", () => {
  const entries = [
    thought(at, "I look it up."),
    functionCall("fc1", "Look_x", { path: "a" }),
    functionResult("fc1", "found"),
  ].map((entry) => ({ entry, subAgent: null }));
  expect(thoughtsRoomText("Helper", "@agent_helper:example.org", entries)).toBe(
    [
      "Helper (@agent_helper:example.org): I look it up.",
      '```xml\n<functionCall id="fc1" function="Look_x">\n  <parameter name="path">a</parameter>\n</functionCall>\n```',
      '```xml\n<functionResult id="fc1">\n  <result>found</result>\n</functionResult>\n```',
    ].join("\n\n"),
  );
});

test("the thoughts room names the sub-agents whose thoughts, calls and results it shows", () => {
  const entries = [
    { entry: functionCall("fc1", "delegate_x", {}), subAgent: null },
    { entry: thought(at, "I ask."), subAgent: "planner" },
    { entry: functionCall("fc1.1", "delegate_x", {}), subAgent: "planner" },
    { entry: functionCall("fc1.1.1", "FS_Read_x", {}), subAgent: "planner/clerk" },
    { entry: functionResult("fc1.1.1", "text"), subAgent: "planner/clerk" },
    { entry: functionResult("fc1", "done"), subAgent: null },
  ];
  const named = thoughtsRoomText("Helper", "@h:example.org", entries).split("\n\n");
  expect(named.filter((line) => !line.startsWith("```"))).toEqual([
    "Helper / planner (@h:example.org): I ask.",
    "Helper / planner / clerk (@h:example.org):",
    "Helper (@h:example.org):",
  ]);
});

test("nothing in a call or result gets out of its code block", () => {
  const text = fc
    .array(fc.oneof(hostileText, fc.constantFrom("\n```\n", "````", "\n~~~\n", "`")))
    .map((pieces) => pieces.join(""));
  fc.assert(
    fc.property(text, (content) => {
      const tokens = new MarkdownIt().parse(
        thoughtsRoomText("A", "@a:b", [{ entry: functionResult("fc1", content), subAgent: null }]),
        {},
      );
      expect(tokens.map(({ type }) => type)).toEqual(["fence"]);
    }),
  );
});

test("a thought that leaves a code block open, outside of lists and quotations, takes in nothing that comes after it", () => {
  const line = fc.constantFrom("```", "````", "~~~", "```js", "  ```", "`` ` ``", "``` `x`", "words", "");
  const content = "```\n# Not a heading\n```";
  fc.assert(
    fc.property(fc.array(line, { maxLength: 8 }), (lines) => {
      const entries = [thought(at, lines.join("\n")), functionResult("fc1", content)];
      const text = thoughtsRoomText(
        "A",
        "@a:b",
        entries.map((entry) => ({ entry, subAgent: null })),
      );
      const last = new MarkdownIt().parse(text, {}).at(-1);
      expect([last?.type, last?.content]).toEqual(["fence", `${render(functionResult("fc1", content))}\n`]);
    }),
    { numRuns: 1_000 },
  );
});
