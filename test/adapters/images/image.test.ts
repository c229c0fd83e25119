import sharp from "sharp";
import { describe, expect, it } from "vitest";
import { forModel, readImage, thumbnail } from "../../../src/adapters/images/image.ts";

const draw = (width: number, height: number) =>
  sharp({ create: { width, height, channels: 4, background: { r: 200, g: 20, b: 20, alpha: 0.5 } } });
const read = async (bytes: Buffer) => {
  const image = await readImage(bytes);
  if (!image) throw new Error("no image");
  return image;
};

describe("an image", () => {
  it.each(["jpeg", "png", "gif", "webp"] as const)("is read from %s", async (format) => {
    const bytes = await draw(30, 20).toFormat(format).toBuffer();
    expect(await readImage(bytes)).toEqual({ bytes, contentType: `image/${format}`, width: 30, height: 20 });
  });

  it("has the size that people see, however the camera was held", async () => {
    const bytes = await draw(30, 20).withMetadata({ orientation: 6 }).jpeg().toBuffer();
    expect(await readImage(bytes)).toMatchObject({ width: 20, height: 30 });
  });

  it.each([
    ["nothing", Buffer.alloc(0)],
    ["text", Buffer.from("not an image")],
    [
      "an SVG, which may name other files",
      Buffer.from('<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"/>'),
    ],
    ["half a PNG's head", Buffer.from("89504e470d0a1a0a0000000d49484452", "hex")],
  ])("is not read from %s", async (_, bytes) => {
    expect(await readImage(bytes)).toBeUndefined();
  });

  it("is not unpacked where it would take more than 50 megapixels", async () => {
    const bytes = await draw(8_000, 7_000).png().toBuffer();
    expect(bytes.length).toBeLessThan(2_000_000);
    const image = await readImage(bytes);
    expect(image && (await forModel(image))).toBeUndefined();
  });
});

describe("an image for a model", () => {
  it("is as it came, where it is small", async () => {
    const image = await read(await draw(300, 200).png().toBuffer());
    expect(await forModel(image)).toBe(image);
  });

  it("is made smaller where it is large", async () => {
    const image = await read(await draw(4_000, 2_000).png().toBuffer());
    const small = await forModel(image);
    expect(small).toMatchObject({ contentType: "image/jpeg", width: 1_568, height: 784 });
    expect(await readImage(small?.bytes ?? Buffer.alloc(0))).toEqual(small);
  });

  it("is not there where it cannot be drawn", async () => {
    const image = await read(await draw(4_000, 2_000).png().toBuffer());
    const broken = { ...image, bytes: Buffer.concat([image.bytes.subarray(0, 20), Buffer.alloc(2_000_000)]) };
    expect(await forModel(broken)).toBeUndefined();
  });
});

describe("a thumbnail", () => {
  it("fits into 800 × 600", async () => {
    const image = await read(await draw(2_000, 3_000).png().toBuffer());
    expect(await thumbnail(image)).toMatchObject({ contentType: "image/jpeg", width: 400, height: 600 });
  });

  it("is not made of what fits already", async () => {
    expect(await thumbnail(await read(await draw(800, 600).png().toBuffer()))).toBeUndefined();
  });
});
