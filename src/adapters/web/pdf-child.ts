import { buffer } from "node:stream/consumers";
import { getDocumentProxy } from "unpdf";

const pagesMost = 200;
const charsMost = 500_000;

// A process of its own, with limits of memory and time: a small file may unpack to more than there is.
const bytes = new Uint8Array(await buffer(process.stdin));
try {
  const options = { isEvalSupported: false, disableFontFace: true, useSystemFonts: false, verbosity: 0 };
  const pdf = await getDocumentProxy(bytes, options);
  const pages: string[] = [];
  let chars = 0;
  for (let n = 1; n <= Math.min(pdf.numPages, pagesMost) && chars < charsMost; n++) {
    const { items } = await (await pdf.getPage(n)).getTextContent();
    const text = items.map((item) => ("str" in item ? item.str + (item.hasEOL ? "\n" : "") : "")).join("");
    pages.push(text);
    chars += text.length;
  }
  const { info } = await pdf.getMetadata().catch(() => ({ info: {} }));
  const title = "Title" in info ? info.Title : undefined;
  process.stdout.write(JSON.stringify({ title, pages, all: pdf.numPages }));
} catch (error) {
  const isLocked = error instanceof Error && error.name === "PasswordException";
  process.stdout.write(JSON.stringify({ error: isLocked ? "locked by a password" : "broken, or no PDF" }));
}
