import sharp from "sharp";
import { afterEach, beforeAll, beforeEach, expect, it } from "vitest";
import { SandboxBrowser, type ShotOrder } from "../../../src/adapters/sandbox/browser.ts";
import { proxyPort, SandboxProxy } from "../../../src/adapters/sandbox/proxy.ts";
import { Reach } from "../../../src/adapters/sandbox/reach.ts";
import { eventually } from "../../support/poll.ts";
import { describeSandbox, sharedBox } from "../../support/sandbox.ts";

const green = [57, 255, 20];
const home = "http://localhost:8000";

describeSandbox("the browser of a sandbox", () => {
  const box = sharedBox({}, true);
  let browser: SandboxBrowser;
  const shoot = (path: string, more: Partial<ShotOrder> = {}, signal = new AbortController().signal) =>
    browser.shoot(
      box(),
      {
        url: path.startsWith("/") ? `${home}${path}` : path,
        ...{ width: 800, height: 600, isFullPage: false, waitMs: 0, timeoutMs: 15_000, ...more },
      },
      signal,
    );
  /** Share of the pixels that have this colour. */
  const shareOf = async (png: Buffer, [r, g, b]: readonly number[]) => {
    const { data, info } = await sharp(png).removeAlpha().raw().toBuffer({ resolveWithObject: true });
    let hits = 0;
    for (let at = 0; at < data.length; at += 3) if (data[at] === r && data[at + 1] === g && data[at + 2] === b) hits++;
    return hits / (info.width * info.height);
  };
  const sizeOf = async (png: Buffer) => {
    const { width, height, format } = await sharp(png).metadata();
    return `${format} ${width}x${height}`;
  };
  /** Processes of the browser, as the sandbox sees them. */
  const processes = async () => Number((await box().sh("pgrep -c -f headless_shell")).stdout);
  const serve = async (pages: Record<string, string>) => {
    const script = `
const pages = ${JSON.stringify(pages)};
require("http").createServer((q, a) => {
  if (q.url === "/never") return;
  if (q.url === "/teapot") a.statusCode = 418;
  if (q.url === "/to-file") return a.writeHead(302, { location: "file:///etc/passwd" }).end();
  a.setHeader("content-type", "text/html; charset=utf-8");
  a.end(pages[q.url] ?? "<body>" + q.url);
}).listen(8000)`;
    await box().runner.start({ id: "web", boot: box().boot, argv: ["node", "-e", script], seconds: null });
    await eventually(async () => (await box().sh("curl -s localhost:8000/")).code === 0, { what: "the page's server" });
  };
  beforeAll(async () => {
    const page = (body: string) => `<!doctype html><title>A &amp; B</title><body style="margin:0">${body}`;
    await serve({
      "/green": page('<div style="background:#39ff14;height:100vh"></div>'),
      "/half": page('<div style="background:#39ff14;width:50vw;height:100vh"></div>'),
      "/tall": page('<div style="background:#39ff14;height:3000px"></div>'),
      "/endless": page('<div style="background:#39ff14;height:90000px"></div>'),
      "/noisy": page(
        '<script>console.error("bad " + 1); console.warn("hm"); console.log("all well"); setTimeout(() => nothing.at, 1); fetch("/x").then(() => fetch("http://localhost:1/"))</script>',
      ),
      "/flood": page('<script>for (let i = 0; i < 5000; i++) console.error("x".repeat(5000))</script>'),
      "/late": page(
        '<script>setTimeout(() => document.body.innerHTML = \'<p id="there" style="margin:0;height:100vh;background:#39ff14">.\', 700)</script>',
      ),
      "/alert": page("<script>alert(1)</script>"),
      "/loop": page("<script>for (;;);</script>"),
      "/memory": page("<script>const kept = []; for (;;) kept.push(new Uint8Array(1e7).fill(1))</script>"),
      "/far": page('<script>fetch("http://far.example.com/").catch((e) => console.error(String(e)))</script>'),
    });
  });
  beforeEach(() => {
    browser = new SandboxBrowser();
  });
  afterEach(async () => {
    await browser.end();
    await eventually(async () => (await processes()) === 0, { what: "the end of the browser" });
  });

  it("takes a picture of a page of the sandbox's own, with its status and title", async () => {
    const shot = await shoot("/green");
    expect(await sizeOf(shot.image)).toBe("png 800x600");
    expect(await shareOf(shot.image, green)).toBe(1);
    expect(shot).toMatchObject({ status: 200, title: "A & B", address: `${home}/green`, notices: [], isCut: false });
    expect(await shareOf((await shoot("/half")).image, green)).toBeCloseTo(0.5, 2);
    expect((await shoot("/teapot")).status).toBe(418);
    expect(await sizeOf((await shoot("http://127.0.0.1:8000/green", { width: 375, height: 667 })).image)).toBe(
      "png 375x667",
    );
  });

  it("takes the whole page, as far as a picture may go", async () => {
    expect(await sizeOf((await shoot("/tall", { isFullPage: true })).image)).toBe("png 800x3000");
    const { image, isCut } = await shoot("/endless", { isFullPage: true });
    expect([await sizeOf(image), isCut]).toEqual(["png 800x10000", true]);
  });

  it("waits for time and for what is to be seen", async () => {
    expect(await shareOf((await shoot("/late")).image, green)).toBe(0);
    expect(await shareOf((await shoot("/late", { waitMs: 1_500 })).image, green)).toBeGreaterThan(0.9);
    expect(await shareOf((await shoot("/late", { waitFor: "#there" })).image, green)).toBeGreaterThan(0.9);
    await expect(shoot("/late", { waitFor: "#none", timeoutMs: 2_000 })).rejects.toThrow(
      "was loaded, but nothing that fits #none could be seen in time",
    );
    await expect(shoot("/late", { waitFor: "[[[", timeoutMs: 2_000 })).rejects.toThrow("[[[ is no CSS selector");
  });

  it("tells what the page and its console said", async () => {
    const { notices } = await shoot("/noisy", { waitMs: 500 });
    const texts = notices.map(({ kind, text }) => `${kind}: ${text}`);
    expect(texts).toContain("error: bad 1");
    expect(texts).toContain("warning: hm");
    expect(texts).toContain("uncaught: nothing is not defined");
    expect(texts).toContain("failed: net::ERR_UNSAFE_PORT http://localhost:1/");
    expect(texts.join()).not.toContain("all well");
    const flood = await shoot("/flood");
    expect([flood.notices.length, flood.more, flood.notices[0]?.text.length]).toEqual([20, 4_980, 300]);
    expect((await shoot("/alert")).status).toBe(200);
  });

  it.each([
    ["a page that never loads", "/never", "was not loaded within 2 s"],
    ["a port that nobody listens on", "http://localhost:8001/", "nothing listens on this port of the computer"],
    ["another host, without a network", "http://far.example.com/", "the computer has no network"],
    ["another host over TLS, without a network", "https://far.example.com/", "the computer has no network"],
    ["an address of the machine's network", "http://10.0.0.1/", "the computer has no network"],
    ["a page that leads to a file", "/to-file", "the browser says net::ERR_UNSAFE_REDIRECT"],
    ["a page that computes for ever", "/loop", "was not loaded within 2 s"],
  ])("says what to do about %s, and goes on", async (_, url, says) => {
    await expect(shoot(url, { timeoutMs: 2_000 })).rejects.toThrow(says);
    expect((await shoot("/green")).status).toBe(200);
  });

  it("reaches others by the proxy only, and no host that it does not allow", async () => {
    const asked: string[] = [];
    const proxy = new SandboxProxy({
      reach: new Reach(["far.example.com"]),
      lookupAll: (name, _, callback) => {
        asked.push(name);
        callback(Object.assign(new Error("not found"), { code: "ENOTFOUND" }), []);
      },
    });
    await box().runner.listen(proxyPort, (connection) => proxy.serve(connection));
    expect(await shoot("http://far.example.com/")).toMatchObject({ status: 502 });
    expect(asked).toEqual(["far.example.com"]);
    expect(await shoot("http://other.example.com/")).toMatchObject({ status: 403 });
    await expect(shoot("https://other.example.com/")).rejects.toThrow("its host is not allowed");
    // Chromium asks no proxy for addresses of this range, and there is no other way.
    await expect(shoot("http://169.254.169.254/latest")).rejects.toThrow("net::ERR_INTERNET_DISCONNECTED");
    await shoot("/far", { waitMs: 300 });
    expect(asked).toHaveLength(2);
    expect((await shoot("/green")).status).toBe(200);
  });

  it("keeps one browser for many pages, and ends it when it has nothing to do", async () => {
    browser = new SandboxBrowser(1_500);
    await shoot("/green");
    const first = (await box().sh("pgrep -o -f headless_shell")).stdout;
    for (let turn = 0; turn < 5; turn++) await shoot("/green");
    expect((await box().sh("pgrep -o -f headless_shell")).stdout).toBe(first);
    expect(browser.isRunning).toBe(true);
    await eventually(() => Promise.resolve(!browser.isRunning), { what: "the idle browser's end" });
    await eventually(async () => (await processes()) === 0, { what: "the end of its processes" });
    expect((await shoot("/green")).status).toBe(200);
  });

  it("starts another where the browser, or its program, was killed", async () => {
    await shoot("/green");
    await box().sh("pkill -9 -f headless_shell");
    expect((await shoot("/green")).status).toBe(200);
    await box().sh("pkill -9 -f input-type=module");
    await eventually(() => Promise.resolve(!browser.isRunning), { what: "the end of its program" });
    expect((await shoot("/green")).status).toBe(200);
  });

  it("gives up when it is told to, and the next page is not the one before", async () => {
    const stop = new AbortController();
    const waiting = shoot("/never", {}, stop.signal);
    setTimeout(() => stop.abort(new Error("stopped")), 2_500);
    await expect(waiting).rejects.toThrow("stopped");
    expect((await shoot("/green")).address).toBe(`${home}/green`);
  });

  it("outlives a page that takes all memory", async () => {
    await expect(shoot("/memory", { timeoutMs: 8_000 })).rejects.toThrow(/UserError|browser|loaded|picture/);
    expect((await shoot("/green")).status).toBe(200);
    expect(await box().isWell()).toBe(true);
  });
});

describeSandbox("a sandbox without a browser", () => {
  const box = sharedBox();

  it("says who can mend it", async () => {
    const order = { url: `${home}/`, width: 80, height: 60, isFullPage: false, waitMs: 0, timeoutMs: 5_000 };
    await expect(new SandboxBrowser().shoot(box(), order, new AbortController().signal)).rejects.toThrow(
      "This computer has no browser: the operator makes an image with one",
    );
  });
});
