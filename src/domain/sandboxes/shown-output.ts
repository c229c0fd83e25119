import type { CommandOutput } from "../../adapters/sandbox/runner-words.ts";
import { toStorable } from "../../base/lib/storable.ts";
import type { ShownOutput } from "../tables/sandbox-commands.ts";

/** Characters of one stream that are shown, at most. */
const shownMost = 8_000;
/** Bytes of its beginning and of its end from which they are taken: escapes go, and so does what was written over. */
const headMost = 32 * 1024;
const tailMost = 64 * 1024;

const gap = "\n[…]\n";
const esc = "\u001b";
const bell = "\u0007";
/** Sequences for terminals. Each part stops at the next escape, so that reading them takes linear time. */
const sequences = new RegExp(
  [
    // Commands to the system, such as titles and links; strings of devices.
    `${esc}\\][^${bell}${esc}]*(?:${bell}|${esc}\\\\)?`,
    `${esc}[PX^_][^${esc}]*(?:${esc}\\\\)?`,
    // Colours and movements.
    `[${esc}\u009b]\\[?[0-?]*[ -/]*[@-~]`,
  ].join("|"),
  "gu",
);
/** All other control characters but tabs and line ends; what turns the direction of text. */
const controls = /[^\P{Cc}\n\t\r]|[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu;

/** The text as a terminal would leave it standing: without sequences, and without what was written over. */
const visibleText = (text: string): string =>
  toStorable(text)
    .replace(sequences, "")
    .replace(controls, "")
    .replaceAll("\r\n", "\n")
    .split("\n")
    .map((line) => line.split("\r").findLast((part) => part !== "") ?? "")
    .join("\n");

/** Collects the output of one stream: its beginning and its end, whatever its length. */
class Collected {
  readonly #head: Buffer[] = [];
  #headLength = 0;
  #tail: Buffer[] = [];
  #tailLength = 0;
  #isCut = false;

  add(data: Buffer): void {
    const first = data.subarray(0, headMost - this.#headLength);
    if (first.length > 0) {
      this.#head.push(first);
      this.#headLength += first.length;
    }
    const rest = data.subarray(first.length);
    if (rest.length === 0) return;
    this.#tail.push(rest);
    this.#tailLength += rest.length;
    if (this.#tailLength < 2 * tailMost) return;
    const kept = Buffer.concat(this.#tail).subarray(-tailMost);
    this.#tail = [Buffer.from(kept)];
    this.#tailLength = kept.length;
    this.#isCut = true;
  }

  shown(): ShownOutput {
    if (!this.#isCut) return shorten(visibleText(Buffer.concat([...this.#head, ...this.#tail]).toString()));
    const [head, tail] = [Buffer.concat(this.#head), Buffer.concat(this.#tail)].map((part) =>
      visibleText(part.toString()),
    );
    return shorten(`${head}${gap}${tail}`, true);
  }
}

const shorten = (text: string, isCut = false): ShownOutput => clipOutput({ text, isCut }, shownMost);

/** Leaves out the middle of what is longer than `most` characters. */
export function clipOutput({ isCut, text }: ShownOutput, most: number): ShownOutput {
  if (text.length <= most) return { text, isCut };
  const half = Math.floor((most - gap.length) / 2);
  return { text: toStorable(`${text.slice(0, half)}${gap}${text.slice(-half)}`), isCut: true };
}

/** Collects the output of a command, as much of it as is shown. */
export class OutputCollector {
  /** Something was dropped before it came; of which stream, nobody knows. */
  #isIncomplete = false;
  readonly #streams = { stdout: new Collected(), stderr: new Collected() };
  #next = 0;

  add({ at, data, stream }: CommandOutput): void {
    this.#isIncomplete ||= at > this.#next;
    this.#next = at + data.length;
    this.#streams[stream].add(data);
  }

  get stdout(): ShownOutput {
    return this.#shown("stdout");
  }

  get stderr(): ShownOutput {
    return this.#shown("stderr");
  }

  #shown(stream: CommandOutput["stream"]): ShownOutput {
    const { isCut, text } = this.#streams[stream].shown();
    return { text, isCut: isCut || this.#isIncomplete };
  }
}
