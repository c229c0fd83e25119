import { existsSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { build } from "esbuild";
import express from "express";
import { type Browser, chromium, type Page } from "playwright-core";
import { Listener } from "./listener.ts";

const packages = join(import.meta.dirname, "../../node_modules");

/** Where Debian and others put it. */
const executablePath = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].find(existsSync);

/** Why there is no browser on this machine; undefined where there is one. For `describe.skipIf` and its title. */
export const browserMissing = executablePath ? undefined : "no Chromium: apt-get install chromium fonts-dejavu-core";

export interface Hydrogen {
  readonly page: Page;
  stop(): Promise<void>;
}

/** The Matrix client Hydrogen in a browser of its own, nobody logged in, for the people of this homeserver. */
export async function openHydrogen(homeserver: { readonly url: string }): Promise<Hydrogen> {
  const listener = new Listener(createServer(await client()));
  await listener.accept();
  const browser = await launch();
  const page = await browser.newPage({ viewport: { width: 1200, height: 800 }, colorScheme: "light" });
  await page.goto(`http://127.0.0.1:${listener.port}/?homeserver=${encodeURIComponent(homeserver.url)}#/login`);
  return {
    page,
    async stop() {
      await browser.close();
      await listener.refuse();
    },
  };
}

function launch(): Promise<Browser> {
  if (executablePath === undefined) throw new Error(browserMissing);
  const calm = ["disable-gpu", "disable-quic", "disable-background-networking", "disable-component-update"];
  return chromium.launch({ executablePath, chromiumSandbox: false, args: calm.map((name) => `--${name}`) });
}

/** Its files, as a web server gives them. */
async function client(): Promise<express.Express> {
  const { outputFiles } = await build({
    entryPoints: [join(import.meta.dirname, "hydrogen-app.js")],
    bundle: true,
    format: "esm",
    external: ["path", "fs", "crypto"],
    write: false,
    logLevel: "error",
  });
  const head =
    '<meta charset="utf-8"><title>Hydrogen</title><link rel="stylesheet" href="/assets/theme-element-light.css">';
  const page = `<!doctype html><html><head>${head}</head><body class="hydrogen"><script type="module" src="/app.js"></script></body></html>`;
  return express()
    .get("/", (_, response) => void response.type("html").send(page))
    .get("/app.js", (_, response) => void response.type("js").send(outputFiles[0]?.text))
    .use("/sw.js", express.static(join(packages, "hydrogen-view-sdk/lib-build/sw.js")))
    .use("/assets", express.static(join(packages, "hydrogen-view-sdk/asset-build/assets")))
    .use("/olm", express.static(join(packages, "@matrix-org/olm")));
}
