import { createHash } from "node:crypto";
import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { ModelRelease } from "../../src/adapters/embedding/model-files.ts";
import { OnnxGraph } from "./onnx-writer.ts";

const words =
  "the a an of to in is on and for with you i we it that this be are not my your green tea coffee likes server database room message key user bot chat time tomorrow today budget holiday beach dog cat train weather rain backup password email music film book read walk mia".split(
    " ",
  );
const characters = [..."abcdefghijklmnopqrstuvwxyz0123456789.,;:!?'-"];
const specials = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"];
const vocabulary = [
  ...new Set([...specials, ...characters, ...characters.map((one) => `##${one}`), ...words, "##s", "##ing"]),
];
const heads = 4;
const inner = 32;
const positions = 512;

/** Numbers that follow from the seed, around zero. */
function randomNumbers(seed: number): (count: number, spread: number) => Float32Array {
  let state = seed;
  const next = (): number => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32 - 0.5;
  };
  return (count, spread) => Float32Array.from({ length: count }, () => (next() + next() + next()) * 2 * spread);
}

/** One layer of a BERT with random weights: it knows nothing, but texts with the same words are close to each other. */
function bert(dimensions: number, seed: number): Buffer {
  const random = randomNumbers(seed);
  const graph = new OnnxGraph();
  for (const name of ["input_ids", "attention_mask", "token_type_ids"]) graph.input(name, ["batch", "sequence"]);
  const table = (rows: number, spread: number) => graph.constant([rows, dimensions], random(rows * dimensions, spread));
  const linear = (x: string, from: number, to: number): string => {
    const weights = graph.constant([from, to], random(from * to, 0.02));
    return graph.node("Add", [graph.node("MatMul", [x, weights]), graph.constant([to], random(to, 0.01))]);
  };
  const norm = (x: string): string => {
    const [ones, zeros] = [1, 0].map((value) =>
      graph.constant([dimensions], new Float32Array(dimensions).fill(value)),
    ) as [string, string];
    return graph.node("LayerNormalization", [x, ones, zeros], { axis: -1, epsilon: { float: 1e-12 } });
  };
  const length = graph.node("Gather", [graph.node("Shape", ["input_ids"]), graph.whole(1)]);
  const word = graph.node("Gather", [table(vocabulary.length, 1), "input_ids"]);
  const type = graph.node("Gather", [table(2, 0.05), "token_type_ids"]);
  const place = graph.node("Slice", [table(positions, 0.05), graph.whole(0), length, graph.whole(0)]);
  const embedded = norm(graph.node("Add", [graph.node("Add", [word, type]), place]));

  const split = graph.whole(0, 0, heads, dimensions / heads);
  const byHead = (x: string, perm: readonly number[]) =>
    graph.node("Transpose", [graph.node("Reshape", [x, split])], { perm });
  const query = byHead(linear(embedded, dimensions, dimensions), [0, 2, 1, 3]);
  const key = byHead(linear(embedded, dimensions, dimensions), [0, 2, 3, 1]);
  const value = byHead(linear(embedded, dimensions, dimensions), [0, 2, 1, 3]);
  const mask = graph.node("Cast", [graph.node("Unsqueeze", ["attention_mask", graph.whole(1, 2)])], { to: 1 });
  const hidden = graph.node("Mul", [graph.node("Sub", [graph.scalar(1), mask]), graph.scalar(-10_000)]);
  const scores = graph.node("Mul", [
    graph.node("MatMul", [query, key]),
    graph.scalar(1 / Math.sqrt(dimensions / heads)),
  ]);
  const attention = graph.node("Softmax", [graph.node("Add", [scores, hidden])], { axis: -1 });
  const mixed = graph.node("Transpose", [graph.node("MatMul", [attention, value])], { perm: [0, 2, 1, 3] });
  const flat = graph.node("Reshape", [mixed, graph.whole(0, 0, dimensions)]);
  const attended = norm(graph.node("Add", [embedded, linear(flat, dimensions, dimensions)]));
  const wide = graph.node("Relu", [linear(attended, dimensions, inner)]);
  const result = graph.node("Add", [attended, linear(wide, inner, dimensions)]);
  graph.output(result, ["batch", "sequence", dimensions]);
  return graph.model();
}

const tokenizer = () => ({
  version: "1.0",
  // As the published file has it: our reader applies neither.
  truncation: { max_length: 128, strategy: "LongestFirst", stride: 0, direction: "Right" },
  padding: null,
  added_tokens: specials.map((content, id) => ({
    id,
    content,
    single_word: false,
    lstrip: false,
    rstrip: false,
    normalized: false,
    special: true,
  })),
  normalizer: {
    type: "BertNormalizer",
    clean_text: true,
    handle_chinese_chars: true,
    strip_accents: null,
    lowercase: true,
  },
  pre_tokenizer: { type: "BertPreTokenizer" },
  post_processor: {
    type: "TemplateProcessing",
    single: [
      { SpecialToken: { id: "[CLS]", type_id: 0 } },
      { Sequence: { id: "A", type_id: 0 } },
      { SpecialToken: { id: "[SEP]", type_id: 0 } },
    ],
    pair: [],
    special_tokens: {
      "[CLS]": { id: "[CLS]", ids: [2], tokens: ["[CLS]"] },
      "[SEP]": { id: "[SEP]", ids: [3], tokens: ["[SEP]"] },
    },
  },
  decoder: { type: "WordPiece", prefix: "##", cleanup: true },
  model: {
    type: "WordPiece",
    unk_token: "[UNK]",
    continuing_subword_prefix: "##",
    max_input_chars_per_word: 100,
    vocab: Object.fromEntries(vocabulary.map((one, id) => [one, id])),
  },
});

/** Files of a small model with random weights, by their paths. */
export const randomModel = ({ dimensions = 32, seed = 7 } = {}): Readonly<Record<string, Buffer>> => ({
  "tokenizer.json": Buffer.from(JSON.stringify(tokenizer())),
  "onnx/model.onnx": bert(dimensions, seed),
});

/** Writes the files of a model into a folder. */
export async function writeModel(dir: string, files: Readonly<Record<string, Buffer>> = randomModel()): Promise<void> {
  for (const [path, bytes] of Object.entries(files)) {
    await mkdir(dirname(join(dir, path)), { recursive: true });
    await writeFile(join(dir, path), bytes);
  }
}

/** The model as if it had been published at this address. */
export const releaseOf = (
  files: Readonly<Record<string, Buffer>>,
  { url = "http://127.0.0.1:1", dimensions = 32 } = {},
): ModelRelease => ({
  model: "random-model",
  dimensions,
  url,
  otherForms: [],
  files: Object.entries(files).map(([path, bytes]) => ({
    path,
    bytes: bytes.length,
    sha256: createHash("sha256").update(bytes).digest("hex"),
  })),
});
