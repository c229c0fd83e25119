import type { Element } from "../../src/base/lmml/element.ts";

/** All elements of a name at or below `root`, in document order. */
export const all = (root: Element | undefined, name: string): Element[] => {
  if (!root) return [];
  const own = root.name === name ? [root] : [];
  return typeof root.children === "string" ? own : [...own, ...root.children.flatMap((child) => all(child, name))];
};

export const textOf = ({ children }: Element): string => (typeof children === "string" ? children : "");
