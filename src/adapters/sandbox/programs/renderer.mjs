// Keeps one browser, and loads pages that are empty without JavaScript: one request after the other, each a line of JSON on standard
// input, each answered by a line of JSON on standard output. Runs in a container of its own: `node --input-type=module -e THIS PROXY`.
// Everything is asked of the proxy, loopback too. Ends with its input, or when it was not asked for long.
import { createRequire } from "node:module";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";

const { chromium } = createRequire("/node_modules/")("playwright-core");

const launch = () =>
  chromium.launch({
    executablePath: "/usr/local/bin/clevernet-chromium",
    headless: true,
    // The container itself is the wall: user namespaces are denied in it.
    chromiumSandbox: false,
    args: [
      "--disable-dev-shm-usage",
      "--disable-gpu",
      "--no-zygote",
      "--disable-extensions",
      "--disable-background-networking",
      "--disable-crash-reporter",
      "--disable-quic",
      "--webrtc-ip-handling-policy=disable_non_proxied_udp",
      "--force-webrtc-ip-handling-policy",
      `--proxy-server=${process.argv.at(-1)}`,
      "--proxy-bypass-list=<-loopback>",
    ],
  });

const load = async (browser, { url, needsPicture, width, height, textLeast, textMs, timeoutMs, htmlMost }) => {
  const context = await browser.newContext({
    viewport: { width, height },
    acceptDownloads: false,
    serviceWorkers: "block",
  });
  const over = new AbortController();
  const late = sleep(timeoutMs, undefined, { signal: over.signal }).then(() => {
    throw new Error(`Timeout ${timeoutMs}ms exceeded.`);
  });
  late.catch(() => {});
  const steps = async () => {
    const page = await context.newPage();
    page.setDefaultTimeout(0);
    page.on("dialog", (dialog) => dialog.dismiss().catch(() => {}));
    if (!needsPicture)
      await context.route("**/*", (route) =>
        (/^(?:image|media|font)$/.test(route.request().resourceType()) ? route.abort() : route.continue()).catch(
          () => {},
        ),
      );
    const response = await page.goto(url, { waitUntil: needsPicture ? "load" : "domcontentloaded" });
    // biome-ignore lint/performance/useDomNodeTextContent: what is not to be seen, such as scripts, is no text.
    const hasText = (least) => (document.body?.innerText.length ?? 0) > least;
    await page.waitForFunction(hasText, textLeast, { timeout: textMs }).catch(() => {});
    const html = await page.content();
    return {
      html: html.slice(0, htmlMost),
      isCut: html.length > htmlMost,
      address: page.url().slice(0, 4000),
      status: response?.status() ?? null,
      ...(needsPicture && { image: (await page.screenshot({ animations: "disabled" })).toString("base64") }),
    };
  };
  try {
    const loaded = steps();
    loaded.catch(() => {});
    return await Promise.race([loaded, late]);
  } catch (error) {
    return { error: String(error?.message ?? error).slice(0, 1000) };
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
    say(await load(browser, JSON.parse(line)));
  } catch (error) {
    say({ error: String(error?.message ?? error).slice(0, 1000) });
  }
}
process.exit();
