import { element } from "../../base/lmml/element.ts";
import { beginning } from "../../base/prompt/measure.ts";
import { toStored } from "../../base/prompt/stored.ts";
import { nameOf, parsePath } from "../files/path.ts";
import { type SearchMode, search } from "../files/search.ts";
import { searchByMeaning } from "./semantic-search.ts";
import type { WindowSource } from "./windows.ts";

/** Arguments of a search, beside its place. */
export interface SearchArguments {
  readonly query: string;
  readonly mode: SearchMode;
}

const resultsMax = 50;
/** Characters of a line that are shown. */
const lineChars = 300;

/** A search through files: each result is a line of the window. */
export const searchSource: WindowSource = {
  async read(path, args, { files, findPassages, signal }) {
    const { query, mode } = JSON.parse(args) as SearchArguments;
    const request = { path, query, limit: resultsMax, signal };
    const results = await (mode === "semantic"
      ? searchByMeaning(files, request, findPassages)
      : search(files, { ...request, mode }));
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
      content: toStored(element("content", {}, shown)),
      sources: files.sources,
      taint: files.taint,
    };
  },
};
