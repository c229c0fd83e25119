import { XMLParser } from "fast-xml-parser";
import type { Element } from "./element.ts";
import { resolveReferences } from "./escape.ts";
import { isBooleanAttribute, maxDepth } from "./vocabulary.ts";
import { makeWellFormed } from "./well-formed.ts";

/** The parser keeps the order of nodes: `{ [name]: children, ":@": { [@name]: value } }`, or text. */
interface Node {
  readonly [name: string]: unknown;
  readonly "#text"?: string;
  readonly ":@"?: Readonly<Record<string, string | true>>;
}

const parser = new XMLParser({
  preserveOrder: true,
  ignoreAttributes: false,
  attributeNamePrefix: "@",
  allowBooleanAttributes: true,
  parseTagValue: false,
  trimValues: false,
  processEntities: false,
  maxNestedTags: maxDepth,
  jPath: false,
  onDangerousProperty: (name) => name,
});

const toElement = (node: Node): Element => {
  const name = Object.keys(node).find((key) => key !== ":@") ?? "";
  const content = node[name] as readonly Node[];
  const elements = content.filter((child) => child["#text"] === undefined);
  const attributes = Object.entries(node[":@"] ?? {}).map(([prefixed, value]) => {
    const attribute = prefixed.slice(1);
    return [attribute, value === true || isBooleanAttribute(attribute) ? true : resolveReferences(value)] as const;
  });
  return {
    name,
    attributes: Object.fromEntries(attributes),
    children:
      elements.length > 0
        ? elements.map(toElement)
        : resolveReferences(content.map((text) => text["#text"]).join("")) || [],
  };
};

/**
 * Reads the text of one element. Whitespace between elements is indentation and dropped; all other text is kept as it
 * is, raw content to the last character; an empty element has no child. Booleans may be present, `="yes"` or `="true"`.
 * The parser forgives much that must not be forgiven, so `wellFormed` comes before it.
 *
 * @throws LmmlError
 */
export const parse = (text: string): Element => {
  const nodes: readonly Node[] = parser.parse(makeWellFormed(text));
  const root = nodes.find((node) => node["#text"] === undefined);
  if (!root) throw new Error("LMML: well-formed text without an element");
  return toElement(root);
};
