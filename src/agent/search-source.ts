import { beginning } from "../context/measure.ts";
import { element } from "../lmml/element.ts";
import { render } from "../lmml/render.ts";
import { nameOf, parsePath } from "../vfs/path.ts";
import { type SearchMode, search } from "../vfs/search.ts";
import type { WindowSource } from "./window-desk.ts";

/** What a search is for, beside the place. */
export interface SearchArguments {
  readonly query: string;
  readonly mode: SearchMode;
}

const resultsMax = 50;
/** Characters of a line that are shown. */
const lineChars = 300;

/** A search through files: each result is a line of the window. */
export const searchSource: WindowSource = {
  async read(path, args, { files, signal }) {
    const { query, mode } = JSON.parse(args) as SearchArguments;
    const results = await search(files, { path, query, mode, limit: resultsMax, signal });
    const shown = results.map(({ path: found, score, lines }) =>
      element(
        "searchResult",
        { path: found, score: score.toFixed(1) },
        mode === "filename"
          ? [element("match", { line: 1 }, nameOf(parsePath(found)))]
          : lines.map(({ number: line, text }) => element("match", { line }, beginning(text, lineChars))),
      ),
    );
    return {
      contentType: "text/lmml",
      content: render(element("content", {}, shown)),
      sources: files.sources,
      taint: files.taint,
    };
  },
};
