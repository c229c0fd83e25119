import { describe, expect, it } from "vitest";
import { element } from "../../../src/base/lmml/element.ts";
import { parse } from "../../../src/base/lmml/parse.ts";
import { LmmlError } from "../../../src/base/lmml/well-formed.ts";
import { seedFormats } from "./seed-formats.ts";

const refusal = (text: string): string => {
  try {
    parse(text);
  } catch (thrown) {
    expect(thrown).toBeInstanceOf(LmmlError);
    return (thrown as LmmlError).message;
  }
  throw new Error("nothing was refused");
};

describe("parse", () => {
  it.each(seedFormats)("reads %s as the source document writes it", (_, tree, text) => {
    expect(parse(text)).toEqual(tree);
  });

  it("reads booleans as presence, yes or true", () => {
    const presence = element("x", { pinned: true });
    expect(parse("<x pinned />")).toEqual(presence);
    expect(parse('<x pinned="yes" />')).toEqual(presence);
    expect(parse("<x pinned='true'/>")).toEqual(presence);
  });

  it("leaves yes, true and booleantrue alone where the attribute is no boolean", () => {
    expect(parse('<x a="yes" b="true" c="booleantrue" d />')).toEqual(
      element("x", { a: "yes", b: "true", c: "booleantrue", d: true }),
    );
  });

  it("drops whitespace and comments between elements and keeps whitespace that is text", () => {
    expect(parse("\n<x>\n  <!-- c -->\n  <a>  </a>\n  <b />\n</x>\n")).toEqual(
      element("x", {}, [element("a", {}, "  "), element("b")]),
    );
  });

  it("takes raw content to the last character, whatever stands in it", () => {
    const text = '\r\n  a < b && </other> <!-- <![CDATA[ &#0; </content-x> "\n';
    expect(parse(`<content raw="yes">${text}</content >`)).toEqual(element("content", { raw: true }, text));
  });

  it("reads the five references and numeric ones", () => {
    expect(parse('<x a="&quot;&apos;&#x1F600;">&lt;&gt;&amp;&#233;&amp;lt;</x>')).toEqual(
      element("x", { a: "\"'😀" }, "<>&é&lt;"),
    );
  });

  it("reads names that JavaScript objects have already", () => {
    expect(parse('<toString valueOf="1" constructor="2" />')).toEqual(
      element("toString", { valueOf: "1", constructor: "2" }),
    );
  });

  it.each([
    ["nothing", " \n", "There is no element"],
    ["text alone", "hello", "Text outside of the element (line 1, column 1)"],
    ["text after the element", "<a/> x", "Text outside"],
    ["two elements", "<a/>\n<b/>", "<b> is a second element: there must be one around all (line 2, column 1)"],
    ["text before an element", "<a>x<b/></a>", "Text beside elements in <a>"],
    ["text after an element inside", "<a><b/>x</a>", "Text beside elements in <a>"],
    ["a wrong closing tag", "<a>\n</b>", "</b> stands where </a> is expected (line 2, column 1)"],
    ["a closing tag too many", "<a/></a>", "</a> stands where nothing is expected"],
    ["a closing tag with attributes", '<a></a b="c">', "</a …> stands where </a> is expected"],
    ["an element that is not closed", "<a>x", "<a> is not closed"],
    ["raw content that is not closed", "<content raw></content", "<content raw> is not closed"],
    ["a tag that is not closed", "<a", "This is no tag"],
    ["a lone <", "<a>1 < 2</a>", "This is no tag"],
    ["a document type", "<!DOCTYPE a><a/>", "Declarations, CDATA and processing instructions"],
    ["CDATA", "<a><![CDATA[x]]></a>", "Declarations, CDATA and processing instructions"],
    ["the end of CDATA", "<a>]]></a>", "]]> must be written ]]&gt;"],
    ["a processing instruction", "<?xml version='1.0'?><a/>", "Declarations, CDATA and processing instructions"],
    ["a comment that is not closed", "<a><!-- </a>", "The comment is not closed"],
    ["an unknown reference", "<a>&nbsp;</a>", "&nbsp; is no reference that is known"],
    ["an unknown reference in an attribute", '<a b="&b;"/>', "&b;"],
    ["a lone &", "<a>a & b</a>", "& must be written &amp;"],
    ["a reference to what XML cannot carry", "<a>&#0;</a>", "&#0;"],
    ["a reference beyond Unicode", "<a>&#x110000;</a>", "&#x110000;"],
    ["a character that XML cannot carry", "<a>\0</a>", "LMML cannot carry ‹U+0000›"],
    ["a lone surrogate", "<a>\uD800</a>", "LMML cannot carry ‹U+D800›"],
    ["an attribute twice", '<a b="1" b="2"/>', "<a> has the attribute b twice"],
    ["an attribute without quotes", "<a b=1/>", "<a> has something that is no attribute"],
    ["attributes without space between", '<a b="1"c="2"/>', "<a> has something that is no attribute"],
    ["a boolean with another value", '<a pinned="no"/>', "The attribute pinned is there or not"],
    ["a missing required attribute", '<functionCall id="fc1"/>', '<functionCall> needs the attribute function="…"'],
    ["a required attribute without a value", "<functionResult id />", '<functionResult> needs the attribute id="…"'],
    ["a reserved name", "<constructor/>", "<constructor> cannot be the name of an element"],
    ["a billion laughs", '<!DOCTYPE l [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;">]><l>&b;</l>', "Declarations"],
    ["ten thousand elements in one another", `${"<a>".repeat(1e4)}${"</a>".repeat(1e4)}`, "deeper than 100"],
    ["an endless text", `<a>${"x".repeat(1e6)}</a>`, "longer than 1000000 characters"],
  ])("refuses %s", (_, text, message) => {
    expect(refusal(text)).toContain(message);
  });

  it.each([
    ["<", 1_000_000],
    ["<!--", 200_000],
    ["<a ", 300_000],
    ["<a>&#", 190_000],
    ["<a></a", 150_000],
    ["<content raw></content ", 40_000],
    ["<a b='\"", 140_000],
  ])("refuses %j a great many times", (piece, times) => {
    expect(refusal(piece.repeat(times))).not.toBe("");
  });
});
