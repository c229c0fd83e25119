import { once } from "node:events";
import { buffer } from "node:stream/consumers";
import { createDeflate } from "node:zlib";

// PDF files that are made on the spot: some are honest, the others want to hurt whoever reads them.

const objects = (list: readonly string[], trailer = ""): Buffer => {
  let text = "%PDF-1.7\n";
  const places: number[] = [];
  for (const [index, object] of list.entries()) {
    places.push(text.length);
    text += `${index + 1} 0 obj\n${object}\nendobj\n`;
  }
  const start = text.length;
  const rows = places.map((place) => `${String(place).padStart(10, "0")} 00000 n \n`).join("");
  text += `xref\n0 ${list.length + 1}\n0000000000 65535 f \n${rows}trailer\n<</Size ${list.length + 1}/Root 1 0 R${trailer}>>\nstartxref\n${start}\n%%EOF`;
  return Buffer.from(text, "latin1");
};

const stream = (data: Buffer, filter?: string): string =>
  `<</Length ${data.length}${filter ? `/Filter${filter}` : ""}>>\nstream\n${data.toString("latin1")}\nendstream`;

const line = (page: number): Buffer =>
  Buffer.from(`BT /F1 12 Tf 50 700 Td (Page ${page}: the quick brown fox jumps over the lazy dog) Tj ET`);

const pages = (count: number, content: (page: number) => Buffer = line, filter?: string): Buffer => {
  const list = ["<</Type/Catalog/Pages 2 0 R>>", "", "<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>"];
  const kids: string[] = [];
  for (let page = 1; page <= count; page++) {
    list.push(stream(content(page), filter));
    list.push(
      `<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Resources<</Font<</F1 3 0 R>>>>/Contents ${list.length} 0 R>>`,
    );
    kids.push(`${list.length} 0 R`);
  }
  list[1] = `<</Type/Pages/Count ${count}/Kids[${kids.join(" ")}]>>`;
  return objects(list);
};

const page = "<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]>>";

export const pdfFiles = {
  three: () => pages(3),
  many: () => pages(250),
  truncated: () => pages(10).subarray(0, 900),
  empty: () => Buffer.alloc(0),
  html: () => Buffer.from("<html>hello"),
  loop: () => objects(["<</Type/Catalog/Pages 2 0 R>>", "<</Type/Pages/Count 1000000000/Kids[2 0 R]>>"]),
  count: () => objects(["<</Type/Catalog/Pages 2 0 R>>", "<</Type/Pages/Count 2000000000/Kids[3 0 R]>>", page]),
  recursion: () =>
    objects([
      "<</Type/Catalog/Pages 2 0 R>>",
      "<</Type/Pages/Count 1/Kids[3 0 R]>>",
      "<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]/Resources<</XObject<</X 5 0 R>>>>/Contents 4 0 R>>",
      stream(Buffer.from("/X Do")),
      "<</Type/XObject/Subtype/Form/BBox[0 0 9 9]/Resources<</XObject<</X 5 0 R>>>>/Length 12>>\nstream\n/X Do /X Do \nendstream",
    ]),
  encrypted: () =>
    objects(
      [
        "<</Type/Catalog/Pages 2 0 R>>",
        "<</Type/Pages/Count 0/Kids[]>>",
        `<</Filter/Standard/V 1/R 2/O(${"a".repeat(32)})/U(${"b".repeat(32)})/P -4>>`,
      ],
      "/Encrypt 3 0 R/ID[(a)(a)]",
    ),
} as const;

/** One page of a megabyte that unpacks to a gigabyte. */
export const pdfBomb = async (): Promise<Buffer> => {
  const packer = createDeflate({ level: 9 });
  const packed = buffer(packer);
  for (let megabyte = 0; megabyte < 1_024; megabyte++)
    if (!packer.write(Buffer.alloc(1 << 20, 32))) await once(packer, "drain");
  packer.end();
  const content = await packed;
  return pages(1, () => content, "/FlateDecode");
};
