import { createSocket } from "node:dgram";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { execa } from "execa";
import sharp from "sharp";
import { afterAll, beforeAll, expect, inject, it } from "vitest";
import { WayOut } from "../../../src/adapters/web/way-out.ts";
import { WebReader } from "../../../src/adapters/web/web-reader.ts";
import { systemClock } from "../../../src/base/lib/clock.ts";
import { secret } from "../../../src/base/lib/ids.ts";
import { silentLog } from "../../../src/base/lib/log.ts";
import { PageRenderer } from "../../../src/domain/sandboxes/page-renderer.ts";
import { describeSandbox, testSpec } from "../../support/sandbox.ts";
import { localHost } from "../../support/sandbox-host.ts";
import { LocalWeb } from "../../support/web.ts";

describeSandbox("a page that is loaded in a browser", () => {
  const name = `clevernet-test-${secret(5)}`;
  const [inner, udp] = [createServer((_, response) => response.end("SECRET")), createSocket("udp4")];
  /** All that reached a server or a port that no page may reach. */
  const leaks: string[] = [];
  let web: LocalWeb;
  let house: LocalWeb;
  let renderer: PageRenderer;
  let reader: WebReader;
  const signal = AbortSignal.timeout(300_000);
  const script = (path: string, text: string): string => {
    web.pages.set(path, { body: `<!doctype html><title>App</title><div id=root></div><script>${text}</script>` });
    return web.url(path);
  };
  const isThere = async () => (await execa("podman", ["container", "exists", name], { reject: false })).exitCode === 0;
  const words = `"<h1>Rendered</h1><p>" + "by script ".repeat(50)`;

  beforeAll(async () => {
    [web, house] = [await LocalWeb.start(), await LocalWeb.start()];
    inner.on("request", ({ url }) => leaks.push(`http ${url}`));
    inner.on("upgrade", ({ url }, socket) => leaks.push(`socket ${url}`) && socket.destroy());
    udp.on("message", () => leaks.push("udp"));
    await new Promise<void>((resolve) => inner.listen(0, "127.0.0.1", resolve));
    await new Promise<void>((resolve) => udp.bind(0, "127.0.0.1", resolve));
    const sandbox = inject("sandbox");
    const allow = [web.door, house.door];
    const { firstUid, limits } = testSpec();
    renderer = new PageRenderer({
      host: localHost(),
      settings: { image: "browser" in sandbox ? sandbox.browser : "", firstUid, limits },
      selfTest: { pass: async () => {} },
      ...{ name, allow, clock: systemClock, log: silentLog },
    });
    reader = new WebReader(new WayOut({ allow }), renderer);
    // One of a process that was killed.
    await localHost().create({ ...testSpec(), name });
    await renderer.clear();
    expect(await isThere()).toBe(false);
  });
  afterAll(async () => {
    await reader.close();
    await renderer.close();
    inner.close();
    udp.close();
    await Promise.all([web.stop(), house.stop()]);
    expect(await isThere()).toBe(false);
  });

  it("is read as its scripts have written it, where it is empty without them, or as a picture where one is wanted", async () => {
    const late = script("/late", `setTimeout(() => root.innerHTML = ${words}, 300)`);
    const page = await reader.read(late, { form: "markdown" }, signal);
    expect(page).toMatchObject({ title: "App", isRendered: true, url: late, screenshot: undefined });
    expect(page.text).toContain("by script by script");
    const plain = web.serve("/plain", "Plain", "<script>1</script>");
    expect(await reader.read(plain, { form: "markdown" }, signal)).not.toHaveProperty("isRendered");
    const { screenshot, text } = await reader.read(plain, { form: "markdown", needsPicture: true }, signal);
    expect(text).toContain("This page says a few words more");
    expect(await sharp(screenshot).metadata()).toMatchObject({ format: "png", width: 1_280, height: 720 });
  });

  it("reaches nothing that is not public, by no way: no request and no packet gets through", async () => {
    const secrets = `127.0.0.1:${(inner.address() as AddressInfo).port}`;
    const stun = `stun:127.0.0.1:${(udp.address() as AddressInfo).port}`;
    const page = script(
      "/attack",
      `
      const over = (start) => new Promise(start);
      const socket = over((done) => { const one = new WebSocket("ws://${secrets}/ws"); one.onclose = one.onerror = done; });
      const frame = over((done) => { const one = document.createElement("iframe"); one.onload = one.onerror = done;
        one.src = "http://${secrets}/frame"; document.body.append(one); });
      const picture = over((done) => { const one = new Image(); one.onload = one.onerror = done; one.src = "http://169.254.169.254/"; });
      navigator.sendBeacon("http://${secrets}/beacon", "x");
      const peer = new RTCPeerConnection({ iceServers: [{ urls: "${stun}" }] });
      peer.createDataChannel("x");
      const gathered = over((done) => { setTimeout(done, 1_000);
        peer.onicegatheringstatechange = () => peer.iceGatheringState === "complete" && done(); });
      peer.createOffer().then((offer) => peer.setLocalDescription(offer));
      const ask = (address) => fetch(address, { mode: "no-cors" });
      const asked = ["http://${secrets}/a", "http://localhost:80/", "http://[::1]/", "http://10.0.0.1/", "http://169.254.169.254/latest",
        "http://metadata.google.internal/", "${house.url("/house")}"].map(ask);
      Promise.allSettled([...asked, socket, frame, picture, gathered]).then(() => root.innerHTML = ${words});`,
    );
    const { html } = await renderer.render({ url: page, needsPicture: false }, signal);
    expect(html).toContain("by script by script");
    expect(leaks).toEqual([]);
    expect(house.asked).toEqual([]);
    const refused = renderer.traffic().flatMap((one) => (one.refused > 0 ? [one.host] : []));
    expect(refused).toEqual(
      expect.arrayContaining(["127.0.0.1", "localhost", "10.0.0.1", "169.254.169.254", "metadata.google.internal"]),
    );
  });

  it("finds nothing that the one before has left", async () => {
    const keep = script("/keep", `document.cookie = "a=1"; localStorage.a = 1; root.innerHTML = ${words}`);
    await renderer.render({ url: keep, needsPicture: false }, signal);
    const look = script("/look", `root.innerHTML = ${words} + "[" + document.cookie + localStorage.a + "]"`);
    expect((await renderer.render({ url: look, needsPicture: false }, signal)).html).toContain("[undefined]");
  });

  it("has an end, and the next one is loaded", async () => {
    const loop = script("/loop", "for (;;);");
    await expect(renderer.render({ url: loop, needsPicture: false, timeoutMs: 2_000 }, signal)).rejects.toThrow(
      "was not loaded in the browser within 2 s",
    );
    await expect(renderer.render({ url: web.url("/none"), needsPicture: false }, signal)).rejects.toThrow(
      "answered the browser 404",
    );
    const after = script("/after", `root.innerHTML = ${words}`);
    const { html } = await renderer.render({ url: after, needsPicture: false }, signal);
    expect(html).toContain("by script by script");
  });
});
