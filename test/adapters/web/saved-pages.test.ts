import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parseHTML } from "linkedom";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { LocalWeb } from "../../support/web.ts";

const folder = join(import.meta.dirname, "golden");
const marks = /\sdata-(?:keep|drop|title)(?=[\s>])/g;

/** Letters and digits of a text, whatever stands between them. */
const lettersOf = (text: string): string => text.normalize("NFC").replace(/[^\p{L}\p{M}\p{N}]+/gu, "");

/** A page, and its parts that are marked: what it says, and what only stands around it. */
function readSaved(name: string) {
  const bytes = readFileSync(join(folder, name));
  const [, charset = "utf-8"] = /charset="?([\w-]+)/.exec(bytes.toString("latin1")) ?? [];
  const { document } = parseHTML(new TextDecoder(charset).decode(bytes));
  const textsOf = (mark: string) =>
    [...document.querySelectorAll(`[data-${mark}]`)].map(({ textContent }) => String(textContent).trim());
  const served = Buffer.from(bytes.toString("latin1").replace(marks, ""), "latin1");
  return { served, title: textsOf("title")[0], keep: textsOf("keep"), drop: textsOf("drop") };
}

describe("a saved page", () => {
  let web: LocalWeb;
  beforeAll(async () => {
    web = await LocalWeb.start();
  });
  afterAll(() => web.stop());

  it.each(readdirSync(folder))("%s keeps what it says, and nothing that stands around it", async (name) => {
    const { drop, keep, served, title } = readSaved(name);
    expect(keep.length).toBeGreaterThan(0);
    web.pages.set("/saved", { body: served, type: "text/html" });
    const page = await web.reader.read(web.url("/saved"), { form: "markdown" }, AbortSignal.timeout(100_000));
    const letters = lettersOf(page.text);
    expect(keep.filter((text) => !letters.includes(lettersOf(text)))).toEqual([]);
    // Where no article is found, all of the page is shown, and this is said.
    if (!page.isWhole) expect(drop.filter((text) => letters.includes(lettersOf(text)))).toEqual([]);
    // The name of the site may be left out.
    expect(title).toContain(page.title ?? "nothing");
    expect(page.text).not.toMatch(/<(?:script|iframe|object|form|input|style)\b/i);
  });
});
