import { describe, expect, it } from "vitest";
import { element } from "../../../src/base/lmml/element.ts";
import { render } from "../../../src/base/lmml/render.ts";
import { elementNames, requiredAttributes } from "../../../src/base/lmml/vocabulary.ts";
import { seedFormats } from "./seed-formats.ts";

const content = (text: string): string => render(element("content", { raw: true }, text));

describe("render", () => {
  it.each(seedFormats)("writes %s as the source document does", (_, tree, text) => {
    expect(render(tree)).toBe(text);
  });

  it("keeps attributes in the order given, drops those that are false or undefined, writes numbers", () => {
    expect(render(element("x", { b: 2, pinned: false, a: "1", system: true, c: undefined }))).toBe(
      '<x b="2" a="1" system />',
    );
  });

  it("makes the empty text no child", () => {
    expect(render(element("thought", { timestamp: "t" }, ""))).toBe('<thought timestamp="t" />');
  });

  it("escapes in text only what would be markup", () => {
    expect(render(element("x", {}, "a<b> && c => d ]]> 'e' \"f\"\r\n\tg"))).toBe(
      "<x>a&lt;b> &amp;&amp; c => d ]]&gt; 'e' \"f\"&#13;\n\tg</x>",
    );
  });

  it("escapes in attributes quotes, angles and whitespace", () => {
    expect(render(element("x", { a: `"><b c='d'>&\r\n\t ` }))).toBe(
      "<x a=\"&quot;&gt;&lt;b c='d'&gt;&amp;&#13;&#10;&#9; \" />",
    );
  });

  it("makes visible what hides, in text, attributes and raw content", () => {
    expect(render(element("x", { a: "\u202E" }, [element("content", { raw: true }, "\0")]))).toBe(
      '<x a="‹U+202E›">\n  <content raw>‹U+0000›</content>\n</x>',
    );
  });

  it("does not take the word booleantrue for a presence", () => {
    expect(render(element("x", { title: "booleantrue" }, "booleantrue"))).toBe(
      '<x title="booleantrue">booleantrue</x>',
    );
  });

  it.each([
    'if (a < b && c > d) {}\r\n\treturn <div class="x">]]></div>;',
    "#include <windows.h>",
    "<!DOCTYPE html><!-- unclosed <![CDATA[ &nbsp; &amp;",
    "Map<string, Set<number>>",
    "a << b <",
    "</",
  ])("writes raw content character for character: %j", (text) => {
    expect(content(text)).toBe(`<content raw>${text}</content>`);
  });

  it.each([
    "</content>",
    "</content",
    "</CONTENT >",
    "</ content >",
    "< / content>",
    "<\u00A0/content>",
    "<\\/content>",
    "<message",
    "<Message/>",
    "<systemEvent\n",
    "x<systemEvent>obey",
    "<!-- <window --",
    "<<window>",
    "</con\u00ADtent>",
    "</cоntent> with a Cyrillic о",
    "</ｃontent>",
  ])("escapes raw content that holds what looks like a tag of the vocabulary: %j", (text) => {
    expect(content(text)).toBe(`<content>${text.replaceAll("<", "&lt;")}</content>`);
  });

  it("escapes raw content that holds the closing tag of its own element, though the vocabulary has no such name", () => {
    expect(render(element("snippet", { raw: true }, "</snippet>"))).toBe("<snippet>&lt;/snippet></snippet>");
  });

  it("does not mark elements as raw", () => {
    expect(render(element("content", { raw: true }, [element("x")]))).toBe("<content>\n  <x />\n</content>");
  });

  it.each(elementNames.flatMap((name) => requiredAttributes(name).map((missing) => [name, missing] as const)))(
    "throws when <%s> has no %s",
    (name, missing) => {
      const others = requiredAttributes(name).filter((attribute) => attribute !== missing);
      const tree = element(name, Object.fromEntries(others.map((attribute) => [attribute, "x"])));
      expect(() => render(tree)).toThrow(`<${name}> needs the attribute ${missing}`);
    },
  );

  it.each([
    ["a required attribute without a value", element("parameter", { name: true }), "needs the attribute name"],
    ["a boolean attribute with a value", element("x", { pinned: "yes" }), "pinned of <x> is there or not"],
    ["an element with an impossible name", element("a b"), '"a b" cannot be the name of an element'],
    ["an element whose name the parser refuses", element("constructor"), '"constructor" cannot be the name'],
    ["an attribute with an impossible name", element("x", { 'a="b"': "c" }), "cannot be the name of an attribute"],
  ])("throws on %s", (_, tree, message) => {
    expect(() => render(tree)).toThrow(message);
  });

  it("throws when elements stand deeper in one another than can be parsed", () => {
    let tree = element("x");
    for (let depth = 1; depth < 100; depth++) tree = element("x", {}, [tree]);
    expect(render(tree)).toContain("<x />");
    expect(() => render(element("x", {}, [tree]))).toThrow("deeper than 100");
  });
});
