import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { PageForm } from "../../../src/adapters/web/web-reader.ts";
import { pdfBomb, pdfFiles } from "../../support/pdf-files.ts";
import { LocalWeb } from "../../support/web.ts";
import { worstGap } from "../../support/worst-gap.ts";

let web: LocalWeb;
beforeAll(async () => {
  web = await LocalWeb.start();
});
afterAll(() => web.stop());

const read = (path: string, form: PageForm = "markdown", signal = AbortSignal.timeout(100_000)) =>
  web.reader.read(web.url(path), { form }, signal);

const readBody = (body: string | Buffer, type = "text/html", form: PageForm = "markdown") => {
  web.pages.set("/it", { body, type });
  return read("/it", form);
};

const prose = "<p>The river was low that summer, and the boats lay on the sand. </p>".repeat(8);

describe("a page", () => {
  it("is read as Markdown: its article, with links as whole addresses, without menus, scripts and frames", async () => {
    const page = await readBody(`<title>Low &amp; dry</title><nav><a href="/m">Menu entry</a></nav>
      <article><h1>Low water</h1>${prose}<p>See <a href="/notes?a=1">the notes</a>.</p>
      <table><tr><th>Month</th><th>Level</th></tr><tr><td>May</td><td>12</td></tr></table>
      <iframe src="https://evil.example/x"></iframe><img src="data:image/png;base64,AAAA"><script>alert("x")</script>
      <pre><code>a &lt; b</code></pre></article><footer>Imprint</footer>`);
    expect(page).toMatchObject({ url: web.url("/it"), title: "Low & dry", contentType: "text/markdown", isCut: false });
    expect(page.isWhole).toBe(false);
    expect(page.text).toContain("The river was low that summer");
    expect(page.text).toContain(`[the notes](${web.url("/notes?a=1")})`);
    expect(page.text).toMatch(/\| Month \| Level \|\n\| -+ \| -+ \|\n\| May \| 12 \|/);
    expect(page.text).toContain("a < b");
    for (const gone of ["Menu entry", "alert", "iframe", "base64", "Imprint"]) expect(page.text).not.toContain(gone);
  });

  it("is shown whole where there is no article in it", async () => {
    const page = await readBody("<title>Start</title><nav><a href='/a'>One</a> <a href='/b'>Two</a></nav>");
    expect(page).toMatchObject({ title: "Start", isWhole: true });
    expect(page.text).toContain(`[Two](${web.url("/b")})`);
  });

  it("is given as its source where that is asked for", async () => {
    const source = "<title>t</title><p class=x>as it <b>is</b></p>";
    expect(await readBody(source, "text/html", "html")).toMatchObject({ text: source, contentType: "text/html" });
  });

  it.each([
    ["of the header", "text/html; charset=windows-1251", Buffer.from([0xcf, 0xf0, 0xe8, 0xe2, 0xe5, 0xf2])],
    [
      "of the page",
      "text/html",
      Buffer.concat([Buffer.from("<meta charset=windows-1251>"), Buffer.from([0xcf, 0xf0, 0xe8, 0xe2, 0xe5, 0xf2])]),
    ],
    ["that nobody knows, so that it is UTF-8", "text/html; charset=klingon", Buffer.from("Привет")],
  ])("is read in the charset %s", async (_, type, body) => {
    expect((await readBody(body, type)).text).toBe("Привет");
  });

  it("that is empty without its scripts says so where there is no browser", async () => {
    const page = await readBody("<title>App</title><div id=root></div><script src=/app.js></script>");
    expect(page.problem).toContain("There is no browser here");
    expect(await readBody(`<title>App</title><script>1</script><article>${prose}</article>`)).not.toHaveProperty(
      "problem",
    );
    await expect(
      web.reader.read(web.url("/it"), { form: "markdown", needsPicture: true }, AbortSignal.timeout(100_000)),
    ).rejects.toThrow("There is no browser here");
  });

  it("in other writing, from right to left, too, keeps its words", async () => {
    const text = "شهد النهر انخفاضا كبيرا في ذلك الصيف، واستلقت القوارب على الرمال. ";
    const page = await readBody(`<html dir=rtl><title>النهر</title><article><p>${text.repeat(10)}</p></article>`);
    expect(page).toMatchObject({ title: "النهر" });
    expect(page.text).toContain(text.trim());
  });

  it("with characters that the database cannot hold loses these", async () => {
    expect((await readBody("a\0b\ud800c", "text/plain")).text).toMatch(/^ab.*c$/);
  });

  it("tells its final address", async () => {
    web.serve("/there", "There", "");
    web.pages.set("/here", { body: "", status: 301, location: "/there" });
    expect(await read("/here")).toMatchObject({ url: web.url("/there"), title: "There" });
  });
});

describe("something else than a page", () => {
  it("is read as it is: plain text, and JSON with its structure", async () => {
    expect(await readBody("# a\n\n<b>b</b>", "text/markdown")).toMatchObject({
      text: "# a\n\n<b>b</b>",
      title: undefined,
    });
    expect((await readBody('{"a":[1,{"b":2}]}', "application/json")).text).toContain('"b": 2');
    expect((await readBody('{"a":', "application/problem+json")).text).toBe('{"a":');
  });

  it.each([
    [
      "RSS",
      "application/rss+xml",
      `<rss version="2.0"><channel><title>News</title><item><title>First &amp; best</title>
      <link>https://a.example/1</link><pubDate>Mon, 23 Nov 2026</pubDate><description><![CDATA[<p>Some <b>bold</b> words]]></description></item></channel></rss>`,
    ],
    [
      "Atom",
      "application/xml",
      `<?xml version="1.0"?><feed xmlns="http://www.w3.org/2005/Atom"><title>News</title><entry><title>First &amp; best</title>
      <link rel="self" href="https://a.example/0"/><link rel="alternate" href="https://a.example/1"/><updated>Mon, 23 Nov 2026</updated>
      <summary type="html">&lt;p&gt;Some &lt;b&gt;bold&lt;/b&gt; words</summary></entry></feed>`,
    ],
  ])("%s is read as a list", async (_, type, body) => {
    const page = await readBody(body, type);
    expect(page.title).toBe("News");
    expect(page.text).toBe("## First & best\nMon, 23 Nov 2026 https://a.example/1\nSome **bold** words");
  });

  it("is refused where it is no text", async () => {
    await expect(readBody(Buffer.alloc(10), "video/mp4")).rejects.toThrow("no page there but video/mp4");
    await expect(readBody("<svg/>", "image/svg+xml")).rejects.toThrow("no page there but image/svg+xml");
    await expect(readBody(Buffer.from([1, 0, 2]), "")).rejects.toThrow("is no text");
  });
});

describe("an image", () => {
  it("is given as it came, up to a size", async () => {
    const bytes = Buffer.from([0x89, 0x50, 0x4e, 0x47]);
    const image = await readBody(bytes, "image/png");
    expect(image).toMatchObject({ contentType: "image/png", text: "", picture: new Uint8Array(bytes) });
    await expect(readBody(Buffer.alloc(10_000_001), "image/jpeg")).rejects.toThrow("has more than 10 MB");
  });
});

describe("a page that was made to hurt", () => {
  const pages: Readonly<Record<string, () => string>> = {
    deep: () => `<!doctype html><title>t</title><body>${"<div>".repeat(100_000)}<p>bottom`,
    quotes: () => `<body><article>${"<blockquote>q".repeat(5_000)}`,
    "one line": () => `<!doctype html><title>t</title><body><p>${"word ".repeat(990_000)}</p>`,
    angles: () => `<body>${"<".repeat(2_000_000)}`,
    "a big table": () =>
      `<body><article><table>${`<tr>${"<td>cell value</td>".repeat(10)}</tr>`.repeat(20_000)}</table>`,
    "a table that is just small enough": () =>
      `<body><article><table>${`<tr>${"<td>c</td>".repeat(10)}</tr>`.repeat(8_500)}</table>`,
    brackets: () => `<body><article><p>${"[](".repeat(300_000)}</p>`,
    attributes: () => `<body><p ${Array.from({ length: 80_000 }, (_, at) => `a${at}="1"`).join(" ")}>x</p>`,
    comments: () => `<body>${"<!-- ".repeat(190_000)}`,
    dashes: () => `<body><article><p>${"\n- ".repeat(300_000)}</p>`,
    spaces: () => `<body><article><p>a${" ".repeat(400_000)}b</p><pre>${"`".repeat(200_000)}</pre>`,
    pictures: () => `<body><article>${'<img src="data:,'.repeat(50_000)}`,
    "a feed of entities": () =>
      `<rss><!DOCTYPE x [<!ENTITY a "${"a".repeat(1_000)}">${Array.from({ length: 8 }, (_, at) => `<!ENTITY b${at} "${"&a;".repeat(1_000)}">`).join("")}]><channel>${"<item><title>&b1;</title></item>".repeat(1_000)}</channel></rss>`,
    "deep JSON": () => "[".repeat(200_000),
  };
  const types: Readonly<Record<string, string>> = {
    "a feed of entities": "application/rss+xml",
    "deep JSON": "application/json",
  };

  it.each(Object.keys(pages))(
    "%s: ends, and lets the main thread work",
    async (name) => {
      const body = pages[name]?.() ?? "";
      web.pages.set("/hurt", { body, type: types[name] ?? "text/html" });
      const gap = await worstGap(async () => {
        const outcome = await read("/hurt").catch((error: Error) => error);
        if (outcome instanceof Error) expect(outcome.name).toBe("UserError");
        else expect(outcome.text.length).toBeLessThanOrEqual(200_000);
      });
      expect(gap).toBeLessThan(200);
    },
    60_000,
  );

  it("does not keep the next one from being read", async () => {
    web.serve("/next", "Next", "");
    expect(await read("/next")).toMatchObject({ title: "Next" });
  });
});

describe("a PDF", () => {
  const readPdf = (name: keyof typeof pdfFiles) => readBody(pdfFiles[name](), "application/pdf");

  it("is read page by page", async () => {
    const { text, contentType, isCut } = await readPdf("three");
    expect([contentType, isCut]).toEqual(["application/pdf", false]);
    expect(text).toMatch(/^## Page 1\n\nPage 1: the quick brown fox jumps over the lazy dog\n\n## Page 2\n/);
    expect(text).toContain("Page 3: the quick");
  });

  it("of many pages is cut, and says so", async () => {
    const { text, isCut } = await readPdf("many");
    expect(isCut).toBe(true);
    expect(text).toContain("## Page 200");
    expect(text).not.toContain("## Page 201");
  });

  it.each(["truncated", "empty", "html", "loop", "count", "recursion", "encrypted"] as const)(
    "that is no good one (%s) has little text, or an error that says so",
    async (name) => {
      const outcome = await readPdf(name).catch((error: Error) => error);
      if (outcome instanceof Error)
        expect(String(outcome)).toMatch(/^UserError: The PDF cannot be read: it is (?:broken|locked)/);
      else expect(outcome.text.length).toBeLessThan(1_000);
    },
    30_000,
  );

  it("that unpacks to a gigabyte takes no memory of this process, and lets its thread work", async () => {
    web.pages.set("/bomb", { body: await pdfBomb(), type: "application/pdf" });
    const before = process.memoryUsage.rss();
    const gap = await worstGap(async () => {
      const outcome = await read("/bomb").catch((error: Error) => error);
      if (outcome instanceof Error) expect(String(outcome)).toMatch(/^UserError: The PDF cannot be read/);
      else expect(outcome.text.length).toBeLessThan(1_000);
    });
    expect(gap).toBeLessThan(200);
    expect(process.memoryUsage.rss() - before).toBeLessThan(200_000_000);
  }, 60_000);
});
