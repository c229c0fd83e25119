import { describe, expect, it } from "vitest";
import { readAttachment } from "../../../src/adapters/matrix/attachment.ts";

const url = "mxc://example.org/aBc_-9";
const read = (content: object, type = "m.room.message") =>
  readAttachment({ type, content: { msgtype: "m.image", body: "cat.png", url, ...content } });

describe("an attachment", () => {
  it.each(["m.image", "m.file", "m.audio", "m.video"])("comes with %s", (msgtype) => {
    expect(read({ msgtype })).toEqual({ url, name: "cat.png", isCaptioned: false });
  });

  it("comes with a sticker", () => {
    expect(read({ msgtype: undefined }, "m.sticker")?.url).toBe(url);
  });

  it("of a voice message is its audio", () => {
    expect(read({ msgtype: "m.audio", "org.matrix.msc3245.voice": {} })?.url).toBe(url);
  });

  it.each([{ msgtype: "m.text" }, { msgtype: "m.location" }, { body: 5 }])("does not come with %j", (content) => {
    expect(read(content)).toBeUndefined();
  });

  it("has a caption where the body is not its name", () => {
    expect(read({ body: "my cat", filename: "cat.png" })).toEqual({ url, name: "cat.png", isCaptioned: true });
    expect(read({ filename: "cat.png" })?.isCaptioned).toBe(false);
    expect(read({ filename: "" })).toEqual({ url, name: "cat.png", isCaptioned: false });
  });

  it.each([
    undefined,
    5,
    "https://example.org/cat.png",
    "mxc://example.org",
    "mxc://example.org/a/b",
    "mxc://example.org/../../admin",
    "mxc://example.org/a?b=c",
    "mxc://ex%2fample/a",
  ])("has no address in %j", (other) => {
    expect(read({ url: other })).toEqual({ url: undefined, name: "cat.png", isCaptioned: false });
  });
});
