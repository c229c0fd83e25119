import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { blank, printsOf, Repeats } from "../../../src/base/lib/repeats.ts";

const salt = "$event";
const repeats = (redacted: string, ...except: string[]) =>
  new Repeats([{ salt, prints: printsOf([redacted], salt, except) }]);

describe("words that were taken back", () => {
  const long = "Meet me at the old mill by the river, at nine";

  it.each([
    ["five words in a row", long, "She says: meet ME at the... old friends", true],
    ["four words in a row", long, "meet me at the new mill", false],
    ["five of them in another order", long, "the old mill me meet", false],
    ["the whole of a short text", "the code is 4711", "Ann said the code is 4711.", true],
    ["a part of a short text", "the code is 4711", "the code is 4712", false],
    ["a password alone", "hunter2", "her password is `hunter2`!", true],
    ["a part of a word", "hunter2", "hunter22", false],
    ["a word that says nothing", "ok", "ok, I will", false],
    ["words across lines, and in other letters", long, "ＭＥＥＴ me\nat\n\n- the old", true],
    ["ten characters in a row without spaces", "我们明天早上九点在河边见面", "她说:明天早上九点在河边见", true],
    ["fewer of them", "我们明天早上九点在河边见面", "明天早上九点在家", false],
    ["nothing", "", "anything", false],
  ])("are found as %s: %s", (_what, redacted, text, found) => {
    expect(repeats(redacted).in(text)).toBe(found);
  });

  it("are not those that stand elsewhere in the message", () => {
    const edit = repeats("I like tea very much but not today", "I like tea very much");
    expect([edit.in("I like tea very much"), edit.in("tea very much but not")]).toEqual([false, true]);
    expect(repeats("hunter2", "it is hunter2 no more").in("hunter2")).toBe(false);
  });

  it("are not among their prints, which differ from text to text", () => {
    expect(printsOf([long], salt).join()).not.toMatch(/mill|river/);
    expect(printsOf([long], "$other")).not.toEqual(printsOf([long], salt));
  });

  it("are blanked with their lines, and nothing else is", () => {
    const file = "# Plan\n\nmeet me at the\nold mill\r\nbuy bread\nmeet me at the old mill";
    expect(repeats(long).blankLines(file)).toBe(`# Plan\n\n${blank}\n${blank}\r\nbuy bread\n${blank}`);
    expect(repeats(long).blankLines("buy bread\n")).toBe("buy bread\n");
  });

  it("are found beside a word of ten million characters", () => {
    const file = `yak ${"z".repeat(10_000_000)}\nmeet me at the old mill`;
    expect(repeats(long).in(file)).toBe(true);
    expect(repeats(long).blankLines(file).endsWith(`z\n${blank}`)).toBe(true);
  });

  it("stay in lines that were there before", () => {
    const line = "meet me at the old mill";
    expect(repeats(long).blankLines(`${line}\nBen: ${line}`, new Set([line]))).toBe(`${line}\n${blank}`);
  });

  it("are found wherever they stand, and are gone once they are blanked", () => {
    const text = fc.array(fc.constantFrom("one", "two", "drei", "四", "五", "x1", "\n", ", "), { maxLength: 30 });
    fc.assert(
      fc.property(text, text, text, (before, redacted, after) => {
        const words = redacted.join(" ");
        const found = repeats(words);
        const file = [...before, words, ...after].join(" ");
        if (printsOf([words], salt).length > 0) expect(found.in(file)).toBe(true);
        expect(found.in(found.blankLines(file))).toBe(false);
      }),
      // Two words that a blanked line stood between.
      {
        examples: [
          [
            ["two", "\n"],
            ["two", "one"],
            ["\n", "one"],
          ],
        ],
      },
    );
  });
});
