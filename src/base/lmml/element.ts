/** `true` is presence, `false` and `undefined` are absence; everything else is text in the markup. */
export type AttributeValue = string | number | boolean | undefined;

/**
 * One LMML element: it holds text or elements, never both, so that indentation can stand between elements
 * without ever becoming text.
 */
export interface Element {
  readonly name: string;
  readonly attributes: Readonly<Record<string, AttributeValue>>;
  readonly children: string | readonly Element[];
}

/** Builds an element; absent children are left out, so that optional parts can be written inline. */
export const element = (
  name: string,
  attributes: Readonly<Record<string, AttributeValue>> = {},
  children: string | readonly (Element | undefined)[] = [],
): Element => ({
  name,
  attributes,
  children: typeof children === "string" ? children : children.filter((child) => child !== undefined),
});
