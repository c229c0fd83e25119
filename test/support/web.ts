import { createServer, type IncomingMessage, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { WebSearcher } from "../../src/adapters/web/search.ts";
import { WayOut } from "../../src/adapters/web/way-out.ts";
import { WebReader } from "../../src/adapters/web/web-reader.ts";
import { YouTube } from "../../src/adapters/web/youtube.ts";

/** Page that a server of the test gives. */
interface ServedPage {
  readonly type?: string;
  readonly body: string | Buffer;
  readonly status?: number;
  readonly location?: string;
}

/** A server on this machine that stands for the web, and what reads it: `WebReader` and `WebSearcher` as they are. */
export class LocalWeb {
  /** By path. */
  readonly pages = new Map<string, ServedPage>();
  /** Paths with their queries that were asked for, in their order. */
  readonly asked: string[] = [];
  readonly #server: Server;
  readonly wayOut: WayOut;
  readonly reader: WebReader;
  readonly searcher: WebSearcher;
  readonly videos: YouTube;
  readonly door: string;

  private constructor(server: Server) {
    this.#server = server;
    this.door = `127.0.0.1:${(server.address() as AddressInfo).port}`;
    this.wayOut = new WayOut({ allow: [this.door] });
    this.reader = new WebReader(this.wayOut);
    this.videos = new YouTube("20.10.38", this.url(""));
    const service = { apiKey: undefined, engineId: undefined };
    this.searcher = new WebSearcher({ provider: "searxng", url: this.url(""), ...service });
    server.on("request", (request: IncomingMessage, response) => {
      this.asked.push(request.url ?? "");
      const page = this.pages.get(request.url?.split("?")[0] ?? "");
      const { type = "text/html; charset=utf-8", body = "", status = page ? 200 : 404, location } = page ?? {};
      response.writeHead(status, { "content-type": type, ...(location && { location }) }).end(body);
    });
  }

  static async start(): Promise<LocalWeb> {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    return new LocalWeb(server);
  }

  url(path: string): string {
    return `http://${this.door}${path}`;
  }

  /** Serves a page with some text and whatever else stands in its HTML. */
  serve(path: string, title: string, html: string): string {
    const filler = `<p>${"This page says a few words more, as pages do. ".repeat(8)}</p>`;
    const body = `<!doctype html><title>${title}</title><body><article><h1>${title}</h1>${html}${filler}</article>`;
    this.pages.set(path, { body });
    return this.url(path);
  }

  /** Answers searches as SearXNG does. */
  serveResults(
    ...results: readonly { readonly url: string; readonly title: string; readonly content: string }[]
  ): void {
    this.pages.set("/search", {
      type: "application/json",
      body: JSON.stringify({ results, unresponsive_engines: [] }),
    });
  }

  /** Answers about a video as YouTube does. */
  serveVideo(player: object, captions: object | string): void {
    const type = "application/json";
    this.pages.set("/youtubei/v1/player", { type, body: JSON.stringify(player) });
    this.pages.set("/api/timedtext", {
      type,
      body: typeof captions === "string" ? captions : JSON.stringify(captions),
    });
  }

  async stop(): Promise<void> {
    await this.reader.close();
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}
