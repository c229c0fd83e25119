import { visible } from "../../base/lmml/visible.ts";
import { beginning } from "../../base/prompt/measure.ts";

/** Longest text of a mistake: it repeats what was written, which may be a message of 64 KB. */
const mistakeMost = 8_000;

/** Shows a mistake; characters of what was written that deceive the eye stand by their codes. */
export const showMistake = (mistake: string): string => {
  const text = visible(mistake);
  return text.length > mistakeMost ? `${beginning(text, mistakeMost - 1)}…` : text;
};
