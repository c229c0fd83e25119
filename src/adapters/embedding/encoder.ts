import { readFile } from "node:fs/promises";
import { Tokenizer } from "@huggingface/tokenizers";
import { InferenceSession, Tensor } from "onnxruntime-node";
import { messageOf } from "../../base/lib/errors.ts";
import { normalise } from "./embedder.ts";
import { modelPath, tokenizerPath } from "./model-files.ts";

/** Tokens of a text that count, with the two that stand around it; the model has learned from no longer texts. */
const tokensMost = 256;
/** Tokens that the model is given at once, with those that fill up the shorter texts: more are no faster, and need more memory. */
const tokensAtOnce = 1_000;

/** A model that was loaded: a sentence encoder of the BERT family, whose token vectors are averaged. */
export class Encoder {
  readonly #tokenizer: Tokenizer;
  readonly #session: InferenceSession;
  readonly #lastToken: number;

  private constructor(tokenizer: Tokenizer, session: InferenceSession) {
    this.#tokenizer = tokenizer;
    this.#session = session;
    this.#lastToken = tokenizer.encode("").ids.at(-1) ?? 0;
  }

  /** Loads the model of a folder; throws what is wrong with it, and in which file. */
  static async load(dir: string): Promise<Encoder> {
    const tokenizer = await loading(tokenizerPath(dir), async (path) => {
      const read = new Tokenizer(JSON.parse(await readFile(path, "utf8")), {});
      read.encode("It reads.");
      return read;
    });
    const session = await loading(modelPath(dir), (path) =>
      InferenceSession.create(path, {
        intraOpNumThreads: 1,
        interOpNumThreads: 1,
        executionMode: "sequential",
        logSeverityLevel: 4,
      }),
    );
    return new Encoder(tokenizer, session);
  }

  async encode(texts: readonly string[]): Promise<Float32Array[]> {
    const vectors: Float32Array[] = [];
    for (const rows of inBatches(texts.map((text) => this.#tokensOf(text)))) vectors.push(...(await this.#run(rows)));
    return vectors;
  }

  /** The tokenizer itself does not cut. */
  #tokensOf(text: string): number[] {
    const { ids } = this.#tokenizer.encode(text);
    return ids.length > tokensMost ? [...ids.slice(0, tokensMost - 1), this.#lastToken] : ids;
  }

  async #run(rows: readonly (readonly number[])[]): Promise<Float32Array[]> {
    const width = Math.max(...rows.map((row) => row.length));
    const [ids, mask, types] = [0, 0, 0].map(() => new BigInt64Array(rows.length * width)) as [
      BigInt64Array,
      BigInt64Array,
      BigInt64Array,
    ];
    for (const [r, row] of rows.entries()) {
      for (const [t, token] of row.entries()) {
        ids[r * width + t] = BigInt(token);
        mask[r * width + t] = 1n;
      }
    }
    const inputs = { input_ids: ids, attention_mask: mask, token_type_ids: types };
    const feeds = Object.entries(inputs)
      .filter(([name]) => this.#session.inputNames.includes(name))
      .map(([name, values]) => [name, new Tensor("int64", values, [rows.length, width])]);
    const outputs = await this.#session.run(Object.fromEntries(feeds));
    const output = outputs.last_hidden_state ?? outputs[this.#session.outputNames[0] ?? ""];
    const [, tokens, dimensions = 0] = output?.dims ?? [];
    if (!(output?.data instanceof Float32Array) || tokens !== width || dimensions === 0)
      throw new Error("it gives no vector for each token: it is no sentence encoder");
    const { data } = output;
    return rows.map((row, r) => average(data, { from: r * width, count: row.length, dimensions }));
  }
}

/** Names the file that cannot be used. */
async function loading<Part>(path: string, load: (path: string) => Promise<Part>): Promise<Part> {
  try {
    return await load(path);
  } catch (error) {
    throw new Error(`${path} is damaged, or not what it should be (${messageOf(error).slice(0, 300)})`);
  }
}

/** Rows in groups that are small enough to be run at once. */
function inBatches(rows: readonly (readonly number[])[]): (readonly (readonly number[])[])[] {
  const batches: (readonly number[])[][] = [];
  let width = 0;
  for (const row of rows) {
    const last = batches.at(-1);
    width = Math.max(width, row.length);
    if (last && (last.length + 1) * width < tokensAtOnce) last.push(row);
    else {
      batches.push([row]);
      width = row.length;
    }
  }
  return batches;
}

/** Averages the vectors of a text's tokens, without those that only fill its row up. */
function average(
  data: Float32Array,
  { from, count, dimensions }: { from: number; count: number; dimensions: number },
): Float32Array {
  const sum = new Float32Array(dimensions);
  for (let token = from; token < from + count; token++)
    for (let d = 0; d < dimensions; d++) sum[d] = (sum[d] ?? 0) + (data[token * dimensions + d] ?? 0);
  const vector = normalise(sum);
  if (!vector) throw new Error("it gives vectors that are no numbers");
  return vector;
}
