import { plainMarkdown } from "../../src/adapters/web/read-html.ts";
import { systemClock } from "../../src/base/lib/clock.ts";
import { render } from "../../src/base/lmml/render.ts";
import { textContent } from "../../src/base/prompt/viewport.ts";
import { windowElement } from "../../src/base/prompt/window.ts";
import { viewOf } from "../../src/domain/desk/desk.ts";
import { pageSource } from "../../src/domain/desk/page-source.ts";
import type { WindowRow } from "../../src/domain/tables/windows.ts";
import { makeAgent } from "../support/agents.ts";
import { LocalWeb } from "../support/web.ts";
import { ms, percentile, type Table } from "./table.ts";

const warmUps = 3;
const measured = 20;

const sentence = "The river stood at 71 centimetres, and the ferry was <em>stopped</em> until there is rain. ";

/** A page of about so many bytes: menus, and an article with headings, lists, tables, code and links. */
function pageOf(bytes: number): string {
  const menu = Array.from({ length: 60 }, (_, n) => `<li><a href="/section/${n}">Section ${n}</a></li>`).join("");
  const part = (
    n: number,
  ) => `<h2>Part ${n}</h2><p>${sentence.repeat(6)}</p><p>See <a href="/note/${n}">note ${n}</a>. ${sentence.repeat(4)}</p>
    <ul><li>${sentence}</li><li>${sentence}</li></ul>
    <table><tr><th>Day</th><th>Level</th></tr><tr><td>${n}</td><td>7${n}</td></tr></table><pre><code>level(${n}) &lt; 80</code></pre>`;
  let body = "";
  for (let n = 0; body.length < bytes; n++) body += part(n);
  return `<!doctype html><html><head><title>Levels</title></head><body><nav><ul>${menu}</ul></nav><main><article><h1>Levels</h1>${body}</article></main><footer>Imprint</footer></body></html>`;
}

/** Processor time of the whole process, with all of its threads, that each call takes, in milliseconds. */
async function cpuOf(call: () => unknown): Promise<number[]> {
  const times: number[] = [];
  for (let n = 0; n < warmUps + measured; n++) {
    const before = process.cpuUsage();
    await call();
    const { system, user } = process.cpuUsage(before);
    if (n >= warmUps) times.push((system + user) / 1_000);
  }
  return times;
}

/** How long it takes to read a page of the web and to show it in a window, beside its fetch alone. */
export async function web(): Promise<Table[]> {
  const local = await LocalWeb.start();
  const agent = makeAgent("helper");
  const rows: string[][] = [];
  try {
    const before = process.memoryUsage().rss;
    for (const kilobytes of [10, 100, 500]) {
      const html = pageOf(kilobytes * 1_000);
      local.pages.set("/page", { body: html });
      const url = local.url("/page");
      const signal = AbortSignal.timeout(600_000);
      const source = pageSource(local.reader, systemClock);
      const context = { signal } as Parameters<typeof source.read>[2];
      const fetched = await cpuOf(() =>
        local.wayOut.get(url, { signal, accept: "*/*", most: () => 5_000_000 }).then(({ bytes }) => bytes.length),
      );
      const shown = await cpuOf(async () => {
        const { content, ...read } = await source.read(url, JSON.stringify({ mode: "markdown" }), context);
        const row = { ...rowOf(url), ...read } as unknown as WindowRow;
        const view = viewOf(agent, row, { content: textContent(content), version: 0, contentType: read.contentType });
        const window = windowElement(view);
        if (!window || !render(window).includes("The river stood")) throw new Error("the page is not in the window");
      });
      const quick = await cpuOf(() => plainMarkdown(html, url));
      const fetchMs = percentile(fetched, 0.5);
      rows.push([
        `${Math.round(html.length / 1_000)} kB`,
        ms(fetchMs),
        ms(percentile(shown, 0.5) - fetchMs),
        ms(percentile(shown, 0.95) - fetchMs),
        ms(percentile(quick, 0.5)),
      ]);
    }
    const grown = (process.memoryUsage().rss - before) / 1_000_000;
    return [
      {
        title: "Web: a page as it stands in a window",
        columns: ["page", "fetch alone, p50", "to the window, p50", "p95", "all of it as Markdown, p50"],
        rows,
        note: `CPU time of the whole process; its memory has grown by ${Math.round(grown)} MB, the reading thread included; budget for 100 kB ≤ 150 ms beyond the fetch`,
      },
    ];
  } finally {
    await local.stop();
  }
}

const rowOf = (src: string) => ({
  ...{ windowId: "page_1", srcType: "page", src, state: "normal", top: 1, height: 40, queries: [] },
  ...{ isOpen: true, isPinned: false, turnsLeft: 2 },
});
