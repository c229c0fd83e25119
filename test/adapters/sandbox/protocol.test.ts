import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { encodeFrame, FrameDecoder, frameMost, ProtocolError } from "../../../src/adapters/sandbox/protocol.ts";

const heads = fc.dictionary(fc.string(), fc.oneof(fc.string(), fc.integer(), fc.boolean(), fc.constant(null)));
const frames = fc.array(fc.record({ head: heads, payload: fc.uint8Array({ maxLength: 300 }) }), { maxLength: 8 });

describe("frames", () => {
  it("come out as they went in, however the bytes are cut", () =>
    fc.assert(
      fc.property(frames, fc.array(fc.integer({ min: 1, max: 40 })), (sent, cuts) => {
        const bytes = Buffer.concat(sent.map(({ head, payload }) => encodeFrame(head, Buffer.from(payload))));
        const decoder = new FrameDecoder();
        const got = [];
        let at = 0;
        for (const size of [...cuts, bytes.length]) {
          for (const { head, payload } of decoder.feed(bytes.subarray(at, at + size)))
            got.push({ head, payload: [...payload] });
          at += size;
        }
        expect(got).toEqual(
          sent.map(({ head, payload }) => ({ head: JSON.parse(JSON.stringify(head)), payload: [...payload] })),
        );
      }),
    ));

  it("are refused where they are larger than they may be, before they have come", () => {
    const huge = Buffer.alloc(8);
    huge.writeUInt32BE(frameMost + 1, 0);
    expect(() => [...new FrameDecoder().feed(huge)]).toThrow(ProtocolError);
    expect(() => encodeFrame({ op: "data" }, Buffer.alloc(frameMost))).toThrow(ProtocolError);
  });

  it("are refused where their head is longer than they are, or is no object", () => {
    const long = Buffer.alloc(16);
    long.writeUInt32BE(8, 0);
    long.writeUInt32BE(5, 4);
    expect(() => [...new FrameDecoder().feed(long)]).toThrow(ProtocolError);
    for (const text of ["", "[]", "1", "null", "{"]) {
      const bytes = Buffer.concat([Buffer.alloc(8), Buffer.from(text)]);
      bytes.writeUInt32BE(4 + text.length, 0);
      bytes.writeUInt32BE(text.length, 4);
      expect(() => [...new FrameDecoder().feed(bytes)]).toThrow(ProtocolError);
    }
  });
});
