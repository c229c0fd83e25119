import { createWriteStream } from "node:fs";
import { mkdir, rename, rm, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { fetchWithin, networkReason } from "../../base/lib/outside.ts";
import { EmbeddingError } from "./embedder.ts";
import { type ModelFile, type ModelRelease, missingFiles, sha256Of } from "./model-files.ts";

/** One request may take so long; what it has brought is kept, and the next one goes on behind it. */
const requestMs = 120_000;

export interface Download {
  readonly release: ModelRelease;
  /** Folder for the files. */
  readonly dir: string;
  /** Address below which the files are: the release's own, or a mirror's. */
  readonly url: string;
  /** Distinguishes what this process has fetched so far from what another one has; the same after each start. */
  readonly owner: string;
  readonly signal: AbortSignal;
  /** Hears of each piece that has come: bytes of all the files that had to be fetched, and how many these are. */
  readonly onProgress: (done: number, total: number) => void;
}

/**
 * Fetches the files of a model that are missing in a folder. Each gets its name when it is whole and its checksum is
 * right. What came of a file before the line went down, or the process ended, is not fetched again.
 */
export async function downloadModel(download: Download): Promise<void> {
  const { dir, url, release, signal, onProgress } = download;
  const missing = await missingFiles(dir, release);
  const total = missing.reduce((sum, { bytes }) => sum + bytes, 0);
  let before = 0;
  for (const file of missing) {
    const source = `${url}/${file.path}`;
    try {
      await mkdir(dirname(join(dir, file.path)), { recursive: true });
      await fetchFile(file, source, { ...download, onProgress: (done) => onProgress(before + done, total) });
    } catch (error) {
      signal.throwIfAborted();
      throw new EmbeddingError(
        `the embedding model cannot be fetched from ${source}: ${networkReason(error).message}. ${byHand(download)}`,
        error instanceof WrongFile ? "misconfigured" : "unavailable",
      );
    }
    before += file.bytes;
  }
}

/** Says how to do without the download. */
export const byHand = ({ dir, release }: Pick<Download, "dir" | "release">): string =>
  `To do it by hand, put ${release.files.map(({ path }) => path).join(" and ")} of ${release.url} into ${dir}; ` +
  "embeddings.downloadFrom in config.yaml names another server";

/** Another file than the one that was published. */
class WrongFile extends Error {}

async function fetchFile(file: ModelFile, source: string, download: Download): Promise<void> {
  const path = join(download.dir, file.path);
  const part = `${path}.${download.owner}.part`;
  let size = await sizeOf(part);
  while (size < file.bytes) {
    let failure: unknown;
    await fetchRest(file, { source, part, from: size }, download).catch((error: unknown) => {
      failure = error;
    });
    download.signal.throwIfAborted();
    if (failure instanceof WrongFile) throw failure;
    const reached = await sizeOf(part);
    if (reached <= size) throw failure ?? new Error(`the answer ended after ${reached} of ${file.bytes} bytes`);
    size = reached;
  }
  const found = await sha256Of(part);
  if (size !== file.bytes || found !== file.sha256) {
    await rm(part, { force: true });
    throw new WrongFile(
      `it is not the file that was published, and was thrown away (sha256 ${found}, expected ${file.sha256})`,
    );
  }
  await rename(part, path);
}

async function fetchRest(
  { bytes }: ModelFile,
  { source, part, from }: { source: string; part: string; from: number },
  { signal, onProgress }: Download,
): Promise<void> {
  const headers = from > 0 ? { range: `bytes=${from}-` } : undefined;
  const limits = { ms: requestMs, bytes };
  const response = await fetchWithin(source, { signal, ...(headers && { headers }) }, limits);
  if (!response.ok || !response.body) {
    await response.body?.cancel();
    throw new Error(`it answers ${response.status}`);
  }
  const goesOn = response.status === 206 && response.headers.get("content-range")?.startsWith(`bytes ${from}-`);
  let size = goesOn ? from : 0;
  const counted = async function* (chunks: AsyncIterable<Uint8Array>) {
    for await (const chunk of chunks) {
      size += chunk.byteLength;
      if (size > bytes) throw new WrongFile(`it has more than the ${bytes} bytes of the file that was published`);
      onProgress(size, bytes);
      yield chunk;
    }
  };
  await pipeline(Readable.fromWeb(response.body), counted, createWriteStream(part, { flags: goesOn ? "a" : "w" }));
}

const sizeOf = async (path: string): Promise<number> => (await stat(path).catch(() => undefined))?.size ?? 0;
