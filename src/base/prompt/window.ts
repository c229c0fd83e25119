import { lineCount } from "../lib/lines.ts";
import { type Element, element } from "../lmml/element.ts";
import { boxPart } from "./box-part.ts";
import { listPart, type Shown } from "./list-part.ts";
import { clip, sizeAt } from "./measure.ts";
import { type Part, textPart } from "./part.ts";
import { share } from "./share.ts";
import type { FileView, WindowChange, WindowQuery, WindowState, WindowView } from "./types.ts";
import { textContent } from "./viewport.ts";

type StateName = "pinned" | "system" | "maximized" | "minimized";

const byPresence = (states: readonly StateName[]) => Object.fromEntries(states.map((state) => [state, true]));

/** Part with the answers to questions about a window's content. */
const queriesPart = (queries: readonly WindowQuery[], depth: number, limit: number): Part<Shown> =>
  listPart(
    queries.map(({ query, answer }) => element("queryResult", { query: clip(query) }, answer)),
    { depth, limit, keep: "last" },
  );

/** List with the questions about it above. Both share the room equally. */
export const withQueries = (
  list: Part<Shown>,
  asked: readonly WindowQuery[],
  { depth, limit }: { readonly depth: number; readonly limit: number },
): Part<Shown> => {
  if (asked.length === 0) return list;
  const queries = queriesPart(asked, depth, limit);
  const wants = [queries.wanted, list.wanted];
  const wanted = queries.wanted + list.wanted;
  return {
    wanted,
    cut: (max) => {
      const [forQueries = 0, forList = 0] = max >= wanted ? wants : share(wants, max);
      return { ...list.cut(forList), above: queries.cut(forQueries).elements };
    },
  };
};

const closedWindow = ({ windowId }: WindowView): Element =>
  element("window", { windowId: clip(windowId, 64), srcType: "", src: "", contentType: "", closed: true });

/** A window with its states in the order in which they are written. */
interface Pane {
  readonly view: WindowView;
  readonly states: readonly StateName[];
  /** Levels between the root and the window. */
  readonly depth: number;
  readonly limit: number;
}

/** Attributes of the shown lines, if not all are shown; `bottom`: the last of them. */
const build = ({ view, states }: Pane, children: readonly (Element | undefined)[], bottom: number, isCut: boolean) => {
  const { closesIn = 0, top } = view;
  const isPart = bottom > 0 && (top > 1 || bottom < view.lines || isCut);
  return element(
    "window",
    {
      windowId: clip(view.windowId, 64),
      srcType: view.srcType,
      src: clip(view.src, 200),
      contentType: clip(view.contentType, 64),
      lines: view.lines,
      chars: view.chars,
      topLineNumber: isPart ? top : undefined,
      bottomLineNumber: isPart ? bottom : undefined,
      autoCloseInTurns: closesIn > 1 ? closesIn : undefined,
      title: view.title === undefined ? undefined : clip(view.title),
      ...Object.fromEntries(Object.entries(view.attributes ?? {}).map(([name, value]) => [name, clip(value)])),
      ...byPresence(states),
      willAutoCloseAfterTurn: closesIn === 1,
      autorefresh: view.hasAutorefresh,
      refreshable: view.isRefreshable,
      truncated: isCut,
      tainted: view.isTainted,
    },
    children,
  );
};

/** Window with `asked` above as much of its content as fits. */
const contentPart = (pane: Pane, asked: readonly Element[]): Part<Element> => {
  const { view, depth, limit } = pane;
  const { shown, top } = view;
  if (view.state === "minimized") return { wanted: 0, cut: () => build(pane, [], 0, false) };
  if (typeof shown === "string")
    return textPart(shown, depth, (text, isCut) => {
      const lines = lineCount(text);
      const content = element("content", { raw: view.isRaw }, text);
      return build(pane, [...asked, content], lines > 0 ? top + lines - 1 : 0, isCut || view.isTruncated);
    });
  const list = listPart(shown, { depth: depth + 2, limit, keep: "first", floor: 150 });
  return {
    wanted: list.wanted,
    cut: (max) => {
      const { elements, leftOut, reach } = list.cut(max);
      const content = element("content", {}, elements);
      return build(pane, [...asked, content], reach > 0 ? top + reach - 1 : 0, view.isTruncated || leftOut > 0);
    },
  };
};

/** Window that can be cut. Answers and content share the room equally. */
const windowPart = (pane: Pane): Part<Element> => {
  const alone = contentPart(pane, []);
  if (pane.view.queries.length === 0 || pane.view.state === "minimized") return alone;
  const { depth, limit } = pane;
  const queries = queriesPart(pane.view.queries, depth + 1, limit);
  const wants = [queries.wanted, alone.wanted];
  const wanted = queries.wanted + alone.wanted;
  return {
    wanted,
    cut: (max) => {
      const [forQueries = 0, forContent = 0] = max >= wanted ? wants : share(wants, max);
      return contentPart(pane, queries.cut(forQueries).elements).cut(forContent);
    },
  };
};

const shownAs: Record<WindowState, readonly StateName[]> = {
  normal: [],
  maximized: ["maximized"],
  minimized: ["minimized"],
};

/** Windows on the desk: of many, those that were opened last. A maximized window gets four times the room. */
export const windowsPart = (views: readonly WindowView[], limit: number): Part<Shown> => {
  const depth = 1;
  const paneOf = (view: WindowView): Pane => ({
    view,
    states: [
      ...(view.isPinned ? (["pinned"] as const) : []),
      ...shownAs[view.state],
      ...(view.isSystem ? (["system"] as const) : []),
    ],
    depth,
    limit,
  });
  const shell = (view: WindowView): Element =>
    view.isClosed ? closedWindow(view) : build(paneOf(view), [], 0, view.state !== "minimized" && view.chars > 0);
  const part = boxPart(views.toReversed(), {
    depth,
    limit,
    shell,
    part: (view) => {
      if (view.isClosed) return { wanted: 0, cut: () => closedWindow(view) };
      const inner = windowPart(paneOf(view));
      const frame = Math.max(0, sizeAt(inner.cut(0), depth) - sizeAt(shell(view), depth));
      return { wanted: frame + inner.wanted, cut: (max) => (max < frame ? shell(view) : inner.cut(max - frame)) };
    },
    weight: ({ state }) => (state === "maximized" ? 4 : 1),
  });
  return {
    wanted: part.wanted,
    cut: (max) => {
      const shown = part.cut(max);
      return { ...shown, elements: shown.elements.toReversed() };
    },
  };
};

/** A window by itself, in about `limit` characters at most. */
export const windowElement = (view: WindowView, limit = 16_000): Element | undefined =>
  windowsPart([view], limit).cut(limit).elements[0];

/** A file that is always open, shown whole as far as it fits. `states` are attributes by presence, in their order. */
export const fileWindow = (
  windowId: string,
  { path: src, contentType, text, isTainted, window: change }: FileView,
  states: readonly StateName[],
  { depth, limit }: Pick<Pane, "depth" | "limit">,
): Part<Element> => {
  const content = textContent(text);
  const { top = 1, height = content.lines } = change ?? {};
  const seen = content.excerpt({ top, height: change?.state === "maximized" ? content.lines : height }, limit);
  const view: WindowView = {
    windowId,
    srcType: "file",
    src,
    contentType,
    isClosed: false,
    lines: content.lines,
    chars: content.chars,
    shown: seen.shown,
    top: seen.top,
    isTruncated: seen.isTruncated,
    isRaw: true,
    state: change?.state ?? "normal",
    isPinned: true,
    isSystem: true,
    isTainted,
    queries: change?.queries ?? [],
  };
  const isMinimized = view.state === "minimized";
  const named = isMinimized ? [...states.filter((state) => state !== "maximized"), "minimized" as const] : states;
  return windowPart({ view, states: named, depth, limit });
};

/** The persona, as it is always shown. */
export const personaWindow = (file: FileView, at: Pick<Pane, "depth" | "limit">): Part<Element> =>
  fileWindow("persona", file, ["pinned", "system", "maximized"], at);

/** The scratchpad, as it is always shown. */
export const scratchpadWindow = (file: FileView, at: Pick<Pane, "depth" | "limit">): Part<Element> =>
  fileWindow("scratchpad", file, ["pinned", "maximized", "system"], at);

/** Size of a history of which only a part is shown, up to line `bottom`. One line is one entry. */
export interface HistorySize {
  readonly lines: number;
  /** undefined: not all of it was read. */
  readonly chars: number | undefined;
  readonly bottom: number;
}

/** Attributes of a window on a history. */
export const historyWindow = (
  { windowId, src }: Pick<WindowView, "windowId" | "src">,
  { lines, chars, bottom }: HistorySize,
  shown: Shown,
  change?: WindowChange,
) => ({
  windowId,
  srcType: "chatHistory",
  src,
  contentType: "text/lmml",
  lines,
  chars,
  topLineNumber: shown.reach > 0 ? bottom - shown.reach + 1 : undefined,
  bottomLineNumber: shown.reach > 0 ? bottom : undefined,
  pinned: true,
  ...byPresence(shownAs[change?.state ?? "normal"]),
  system: true,
  truncated: shown.leftOut > 0,
});
