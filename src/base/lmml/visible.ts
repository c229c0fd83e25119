/** Letters, marks and digits of some scripts. */
const lettersOf = (...scripts: string[]): string =>
  `[[[\\p{L}\\p{M}\\p{Nd}]&&[${scripts.map((script) => `\\p{scx=${script}}`).join("")}]]--\\p{DI}]`;

const indic = ["Deva", "Beng", "Guru", "Gujr", "Orya", "Taml", "Telu", "Knda", "Mlym", "Sinh", "Khmr", "Mymr", "Tibt"];
const joining = lettersOf("Arab", "Syrc", "Nkoo", "Adlm", "Mong", ...indic);
const unspaced = lettersOf("Thai", "Laoo", "Khmr", "Mymr");

/**
 * Hidden characters that writing needs, each with the company in which it does. A rule looks only at characters that
 * are not hidden or that another rule keeps: what is kept once is kept always.
 */
const needed = [
  // The flags of England, Scotland and Wales.
  /\p{RGI_Emoji_Tag_Sequence}/v.source,
  // Colour or text style of one emoji, keycaps.
  /[\uFE0E\uFE0F](?<=[[\p{Emoji}\p{ExtPict}]--[#*0-9]].)|\uFE0F(?<=[#*0-9].)(?=\u20E3)/v.source,
  // Several emoji joined into one.
  /\u200D(?<=\p{ExtPict}[\p{EMod}\uFE0F]?.)(?=\p{ExtPict})/v.source,
  // The form of a Han character, of a Mongolian letter.
  /[\uFE00-\uFE02\u{E0100}-\u{E01EF}](?<=\p{Script=Han}.)/v.source,
  /[\u180B-\u180F](?<=[\p{L}&&\p{Script=Mongolian}].)/v.source,
  // The shape of letters beside one another.
  `\\u200D(?<=${joining}.)|\\u200C(?<=${joining}.)(?=${joining})`,
  // Borders between words where no spaces are written.
  `\\u200B(?<=${unspaced}.)(?=${unspaced})`,
  // Soft hyphens within words.
  /\u00AD(?<=[[\p{L}\p{M}]--\p{DI}].)(?=[\p{L}--\p{DI}])/v.source,
];

/**
 * Matches characters that show nothing, reorder their neighbours, or cannot stand in XML at all: default ignorable
 * characters (bidi controls, tags, zero-width characters, variation selectors), controls, lone surrogates,
 * noncharacters, annotation marks.
 */
const hidden = /[[\p{DI}\p{Cc}\p{Cs}\p{NChar}\uFFF9-\uFFFB]--[\t\n\r]]/v;
const neededOrHidden = new RegExp(`(${needed.join("|")})|${hidden.source}`, "gv");

const show = (character: string): string =>
  `‹U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}›`;

/** Text in which nothing is hidden, told fast. */
const plain = /^[\t\n\r -~]*$/;

/**
 * The text with everything that XML cannot carry or that deceives the eye written out, as in `‹U+202E›`.
 * Idempotent, never throws, takes time in proportion to the length.
 */
export const visible = (text: string): string =>
  !plain.test(text) && hidden.test(text)
    ? text.replace(neededOrHidden, (match: string, keep: string | undefined) => keep ?? show(match))
    : text;
