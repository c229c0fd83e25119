// Keeps one browser, and takes pictures of pages: one request after the other, each a line of JSON on standard input, each answered by
// a line of JSON on standard output. Runs in a sandbox, as its commands do: `node --input-type=module -e THIS PROXY`. The sandbox's own
// servers are reached directly, all others by the proxy. Ends with its input, or when it was not asked for long.
import { createRequire } from "node:module";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";

const { chromium } = createRequire("/node_modules/")("playwright-core");

const noticesMost = 20;
const noticeLength = 300;

const launch = () =>
  chromium.launch({
    executablePath: "/usr/local/bin/clevernet-chromium",
    headless: true,
    // The sandbox itself is the wall: user namespaces are denied in it.
    chromiumSandbox: false,
    args: [
      "--disable-dev-shm-usage",
      "--disable-gpu",
      "--no-zygote",
      "--disable-extensions",
      "--disable-background-networking",
      "--disable-crash-reporter",
      "--disable-quic",
      // Loopback is never asked of a proxy.
      `--proxy-server=${process.argv.at(-1)}`,
    ],
  });

const take = async (browser, { url, width, height, isFullPage, waitMs, waitFor, timeoutMs, heightMost }) => {
  const context = await browser.newContext({
    viewport: { width, height },
    acceptDownloads: false,
    serviceWorkers: "block",
  });
  const over = new AbortController();
  let step = "load";
  const late = sleep(timeoutMs, undefined, { signal: over.signal }).then(() => {
    throw new Error(`${step}: Timeout ${timeoutMs}ms exceeded.`);
  });
  late.catch(() => {});
  const notices = [];
  let more = 0;
  const notice = (kind, text) => {
    if (notices.length < noticesMost) notices.push({ kind, text: text.slice(0, noticeLength) });
    else more++;
  };
  const steps = async () => {
    const page = await context.newPage();
    page.setDefaultTimeout(0);
    page.on("console", (message) => {
      if (["error", "warning"].includes(message.type())) notice(message.type(), message.text());
    });
    page.on("pageerror", (error) => notice("uncaught", String(error?.message ?? error)));
    page.on("requestfailed", (request) => notice("failed", `${request.failure()?.errorText} ${request.url()}`));
    page.on("dialog", (dialog) => dialog.dismiss().catch(() => {}));
    const response = await page.goto(url, { waitUntil: "load" });
    step = "wait";
    if (waitFor) await page.waitForSelector(waitFor, { state: "visible" });
    await sleep(waitMs);
    step = "draw";
    const tall = isFullPage ? await page.evaluate(() => document.documentElement.scrollHeight) : height;
    const isCut = tall > heightMost;
    const clip = isCut ? { x: 0, y: 0, width, height: heightMost } : undefined;
    const image = await page.screenshot({ fullPage: isFullPage, clip, animations: "disabled" });
    return {
      image: image.toString("base64"),
      status: response?.status() ?? null,
      address: page.url().slice(0, 2000),
      title: (await page.title()).slice(0, 300),
      notices,
      more,
      isCut,
    };
  };
  try {
    const taken = steps();
    taken.catch(() => {});
    return await Promise.race([taken, late]);
  } catch (error) {
    return { error: String(error?.message ?? error).slice(0, 1000), notices, more };
  } finally {
    over.abort();
    await Promise.race([context.close(), sleep(2000)]);
  }
};

const say = (answer) => process.stdout.write(`${JSON.stringify(answer)}\n`);

// Whoever asks ends it sooner: this is for one whose asker has died.
const idleMs = 120_000;
const leave = setTimeout(() => process.exit(), idleMs);

let browser = await launch();
say({ ready: browser.version() });
for await (const line of createInterface({ input: process.stdin })) {
  leave.refresh();
  try {
    if (!browser.isConnected()) browser = await launch();
    say(await take(browser, JSON.parse(line)));
  } catch (error) {
    say({ error: String(error?.message ?? error).slice(0, 1000), notices: [], more: 0 });
  }
}
process.exit();
