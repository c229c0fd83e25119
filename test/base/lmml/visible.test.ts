import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { visible } from "../../../src/base/lmml/visible.ts";
import { hostileText } from "../../support/hostile-text.ts";

describe("visible", () => {
  it.each([
    ["a control character", "a\0b", "a‹U+0000›b"],
    ["an escape sequence of terminals", "\u001B[2J \u009B2J", "‹U+001B›[2J ‹U+009B›2J"],
    ["a lone surrogate", "a\uD800b\uDC00", "a‹U+D800›b‹U+DC00›"],
    ["a noncharacter", "\uFFFE\uFFFF", "‹U+FFFE›‹U+FFFF›"],
    ["a bidi override", "\u202Egnp.exe\u202C", "‹U+202E›gnp.exe‹U+202C›"],
    ["a bidi isolate", "\u2066x\u2069", "‹U+2066›x‹U+2069›"],
    ["a hidden message in tag characters", "hi\u{E0068}\u{E0069}", "hi‹U+E0068›‹U+E0069›"],
    ["a tag sequence that is no flag", "🏴\u{E006F}\u{E0062}\u{E007F}", "🏴‹U+E006F›‹U+E0062›‹U+E007F›"],
    ["a zero-width space in a Latin word", "ad\u200Bmin", "ad‹U+200B›min"],
    ["a zero-width joiner in a Latin word", "ad\u200Dmin", "ad‹U+200D›min"],
    ["a joiner that joins no two emoji", "a\u200D🔥\u200Da", "a‹U+200D›🔥‹U+200D›a"],
    ["a byte order mark", "\uFEFFa", "‹U+FEFF›a"],
    ["a blank letter", "\u3164", "‹U+3164›"],
    ["variation selectors that carry data", "😀\uFE0F\uFE01\u{E0101}", "😀\uFE0F‹U+FE01›‹U+E0101›"],
    ["a soft hyphen at the border of a word", "a\u00AD b", "a‹U+00AD› b"],
    ["a second joiner", "ی\u200C\u200Cی", "ی‹U+200C›‹U+200C›ی"],
  ])("writes out %s", (_, text, shown) => {
    expect(visible(text)).toBe(shown);
  });

  it.each([
    ["whitespace", " \t\r\n\u00A0\u2028"],
    ["letters of all kinds", "Größe Ёлка 漢字 עברית العربية e\u0301"],
    ["emoji sequences", "👩‍👩‍👧 ❤️‍🔥 👩🏽‍🚀 👍🏽 🇩🇪 ☎️ 1️⃣"],
    ["flags made of tags", "🏴󠁧󠁢󠁥󠁮󠁧󠁿🏴󠁧󠁢󠁳󠁣󠁴󠁿🏴󠁧󠁢󠁷󠁬󠁳󠁿"],
    ["joiners that Persian, Hindi, Malayalam and Sinhala need", "می‌خواهم क्‍ष ന്‍ ශ්‍රී"],
    ["borders of Thai words", "ภาษา\u200Bไทย"],
    ["soft hyphens in words", "Rind\u00ADfleisch"],
    ["variants of Han characters", "葛\u{E0100}城"],
    ["text that looks like its own marks", "‹U+202E›"],
  ])("keeps %s", (_, text) => {
    expect(visible(text)).toBe(text);
  });

  it("leaves nothing that a second pass would change", () => {
    fc.assert(
      fc.property(hostileText, (text) => {
        const once = visible(text);
        expect(visible(once)).toBe(once);
      }),
      { numRuns: 10_000 },
    );
  });

  it("leaves nothing hidden by its neighbours, whatever they are", () => {
    const neighbours = [
      "",
      "a",
      "1",
      "ی",
      "क",
      "字",
      "ก",
      "ᠠ",
      "👩",
      "🏽",
      "🏴",
      "\u115F",
      "\u17B4",
      "\uFE0F",
      "\u200D",
    ];
    const hidden = Array.from({ length: 0xe0200 }, (_, code) => String.fromCodePoint(code)).filter(
      (character) => visible(character) !== character,
    );
    for (const before of neighbours)
      for (const after of neighbours) {
        const once = visible(hidden.map((character) => before + character + after).join(" "));
        expect(visible(once)).toBe(once);
      }
    expect(hidden.length).toBeGreaterThan(2000);
  });

  it("always gives well-formed text without controls", () => {
    fc.assert(
      fc.property(hostileText, (text) => {
        const shown = visible(text);
        expect(shown.isWellFormed()).toBe(true);
        expect(shown).not.toMatch(/[\p{Bidi_Control}\p{NChar}]|[^\P{Cc}\t\n\r]/u);
      }),
      { numRuns: 10_000 },
    );
  });
});
