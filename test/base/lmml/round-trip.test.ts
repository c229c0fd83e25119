import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type AttributeValue, type Element, element } from "../../../src/base/lmml/element.ts";
import { parse } from "../../../src/base/lmml/parse.ts";
import { keepRendered, render } from "../../../src/base/lmml/render.ts";
import { visible } from "../../../src/base/lmml/visible.ts";
import { elementNames, requiredAttributes } from "../../../src/base/lmml/vocabulary.ts";
import { LmmlError } from "../../../src/base/lmml/well-formed.ts";
import { hostileText } from "../../support/hostile-text.ts";

const at = "2024-12-25T12:00:00Z";
const place = { systemId: "example.org", roomId: "!a:example.org" };
const event = { ...place, timestamp: at, sender: "@mia:example.org" };
const window = { windowId: "1", srcType: "file", src: "rooms:/a", contentType: "text/plain" };
const room = { ...place, roomName: "Room", loggedInAs: "@agent_a:example.org" };

/** Every place where text of strangers can stand. */
const slots: Record<string, (text: string) => Element> = {
  "message body": (text) => element("message", { ...event, messageType: "m.text" }, text),
  "message sender": (sender) => element("message", { ...event, messageType: "m.text", sender }, "hello"),
  "message type": (messageType) => element("message", { ...event, messageType }, "hello"),
  "thread of a message": (threadId) => element("message", { ...event, messageType: "m.text", threadId }, "hello"),
  "type of a room event": (eventType) => element("roomEvent", { ...event, eventType }),
  "room name": (roomName) => element("room", { ...room, roomName }, [element("newEvents")]),
  "name of a member": (userId) => element("room", room, [element("roomMember", { userId, you: true })]),
  "window title": (title) => element("window", { ...window, title, pinned: true }, [element("content", {}, "x")]),
  "source of a window": (src) => element("window", { ...window, src }),
  "window content": (text) => element("window", window, [element("content", {}, text)]),
  "raw content": (text) => element("window", window, [element("content", { raw: true }, text)]),
  "raw content of an unknown element": (text) => element("snippet", { raw: true }, text),
  "query of a window": (query) => element("window", window, [element("queryResult", { query }, "x")]),
  "answer to a query": (text) => element("window", window, [element("queryResult", { query: "?" }, text)]),
  "path of a search result": (path) =>
    element("searchResult", { path, score: "0.8" }, [element("match", { line: 1 }, "x")]),
  "match of a search": (text) =>
    element("searchResult", { path: "rooms:/a", score: "0.8" }, [element("match", { line: 1 }, text)]),
  "value of a parameter": (text) =>
    element("functionCall", { id: "fc1", function: "Fetch_a1" }, [element("parameter", { name: "url" }, text)]),
  "name of a parameter": (name) =>
    element("functionCall", { id: "fc1", function: "Fetch_a1" }, [element("parameter", { name }, "x")]),
  "result of a call": (text) => element("functionResult", { id: "fc1" }, [element("result", {}, text)]),
  thought: (text) => element("thought", { timestamp: at }, text),
  "system event": (text) => element("systemEvent", { timestamp: at }, text),
  "recalled message": (text) =>
    element("roomFooter", place, [
      element("ragResults", {}, [
        element("ragResult", { score: "0.8923" }, [element("message", { ...event, messageType: "m.text" }, text)]),
      ]),
    ]),
  guide: (text) => element("agentGuide", { title: "Guide" }, text),
  todo: (text) => element("todo", { id: 1 }, text),
  "deep inside": (text) => {
    let tree = element("x", { a: text }, text);
    for (let depth = 1; depth < 5; depth++) tree = element("x", { a: text, b: true }, [tree, element("y", {}, text)]);
    return tree;
  },
};

const shownValue = (value: AttributeValue): AttributeValue => (value === true ? true : visible(String(value)));

/** Tree as an agent is to be shown it: all strings visible, nothing else different; `raw` is looked at apart. */
const shown = ({ name, attributes, children }: Element): Element => ({
  name,
  attributes: Object.fromEntries(
    Object.entries(attributes)
      .filter(([attribute, value]) => value !== undefined && value !== false && attribute !== "raw")
      .map(([attribute, value]) => [attribute, shownValue(value)]),
  ),
  children: typeof children === "string" ? visible(children) || [] : children.map(shown),
});

const withoutRaw = ({ name, attributes: { raw: _, ...attributes }, children }: Element): Element => ({
  name,
  attributes,
  children: typeof children === "string" ? children : children.map(withoutRaw),
});

const parseOrRefuse = (text: string): Element | undefined => {
  try {
    return parse(text);
  } catch (thrown) {
    expect(thrown).toBeInstanceOf(LmmlError);
    return undefined;
  }
};

const name = fc.oneof(fc.constantFrom(...elementNames), fc.constantFrom("x", "toString", "a-b.c_d"));
const attributes = fc.dictionary(
  fc.constantFrom("a", "title", "valueOf", "constructor", "hasOwnProperty"),
  fc.oneof(hostileText, fc.integer(), fc.boolean(), fc.constant(undefined)),
  { maxKeys: 3 },
);
const { tree } = fc.letrec<{ tree: Element }>((tie) => ({
  tree: fc
    .record({
      name,
      attributes,
      raw: fc.boolean(),
      children: fc.oneof({ depthSize: "small" }, hostileText, fc.array(tie("tree"), { maxLength: 3 })),
    })
    .map(({ name, attributes, raw: isRaw, children }) => ({
      name,
      attributes: {
        ...attributes,
        ...Object.fromEntries(requiredAttributes(name).map((required, index) => [required, index])),
        raw: isRaw,
      },
      children,
    })),
}));

/** 100,000 hostile strings over all slots; most of the time goes into making them up. */
const runs = Math.ceil(100_000 / Object.keys(slots).length);

describe("the text of a stranger", () => {
  it.each(Object.entries(slots))("stays text, whole and alone: %s", (_, build) => {
    fc.assert(
      fc.property(hostileText, (text) => {
        const tree = build(text);
        expect(withoutRaw(parse(render(tree)))).toEqual(shown(tree));
      }),
      { numRuns: runs },
    );
  });
});

describe("an element tree", () => {
  it("comes back from its text, with visible texts and without raw where it was escaped", () => {
    fc.assert(
      fc.property(tree, (tree) => {
        expect(withoutRaw(parse(render(tree)))).toEqual(shown(tree));
      }),
      { numRuns: 5_000 },
    );
  });

  it("that lasts is written as any other, at every depth and again", () => {
    fc.assert(
      fc.property(tree, fc.array(fc.nat(3), { minLength: 1, maxLength: 4 }), (tree, depths) => {
        const lasts = keepRendered(structuredClone(tree));
        for (const depth of depths) {
          expect(render(lasts, depth)).toBe(render(tree, depth));
          expect(render(element("x", {}, [lasts]), depth)).toBe(render(element("x", {}, [tree]), depth));
        }
      }),
      { numRuns: 2_000 },
    );
  });

  it("is written the same once it was read", () => {
    fc.assert(
      fc.property(tree, (tree) => {
        const text = render(tree);
        expect(render(parse(text))).toBe(text);
      }),
      { numRuns: 5_000 },
    );
  });
});

/** Pieces of markup in an order that is often wrong and sometimes right. */
const markup = fc
  .array(
    fc.oneof(
      fc.constantFrom(
        "<x>",
        "</x>",
        "<y a='1' b\n>",
        "</y >",
        "<z/>",
        "<w raw>",
        "</w>",
        '<v c="',
        '" />',
        "<!-- c -->",
      ),
      fc.constantFrom(" ", "\r\n", "text", "&amp;", "&#13;", "&am", "p;", ">", "]]", "=", "raw", "pinned", "'", "/"),
      { weight: 1, arbitrary: hostileText },
    ),
    { maxLength: 8, size: "max" },
  )
  .map((pieces) => pieces.join(""));

describe("any text", () => {
  it("is refused with an LmmlError, or is an element that comes back from its rendering", () => {
    let read = 0;
    fc.assert(
      fc.property(
        fc.oneof(
          markup,
          markup.map((inner) => `<x>${inner}</x>`),
        ),
        (text) => {
          const tree = parseOrRefuse(text);
          if (!tree) return;
          read += 1;
          expect(withoutRaw(parse(render(tree)))).toEqual(shown(tree));
        },
      ),
      { numRuns: 20_000 },
    );
    expect(read).toBeGreaterThan(500);
  });
});

describe("raw content", () => {
  it("is marked raw only where it is written as it is, and holds no tag of the vocabulary then", () => {
    fc.assert(
      fc.property(hostileText, (text) => {
        const rendered = render(element("content", { raw: true }, text));
        if (parse(rendered).attributes.raw !== true) return;
        if (text !== "") expect(rendered).toBe(`<content raw>${visible(text)}</content>`);
        for (const name of elementNames) {
          expect(rendered.slice(1, -1).toLowerCase().slice(0, -"</content".length)).not.toMatch(
            new RegExp(`</?${name.toLowerCase()}\\b`),
          );
        }
      }),
      { numRuns: 5_000 },
    );
  });
});
