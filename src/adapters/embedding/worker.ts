import { parentPort, workerData } from "node:worker_threads";
import { messageOf } from "../../base/lib/errors.ts";
import type { Encoder } from "./encoder.ts";
import type { FromWorker, ToWorker } from "./thread.ts";

// A local model, in a thread of its own: it keeps a processor busy for tens of milliseconds with each text. The thread
// ends by itself, when it is told to: ended from outside while the runtime is at work, it would take the process along.

const { dir } = workerData as { dir: string };

/** Loads the runtime, too: where that does not run on this machine, the answers say so. */
const loading = import("./encoder.ts").then(({ Encoder }) => Encoder.load(dir));
loading.catch(() => {});

async function embed(texts: readonly string[]): Promise<FromWorker> {
  let encoder: Encoder | undefined;
  try {
    encoder = await loading;
    return { vectors: await encoder.encode(texts) };
  } catch (error) {
    return { error: messageOf(error), isLoaded: encoder !== undefined };
  }
}

let queue = Promise.resolve();
parentPort?.on("message", (message: ToWorker) => {
  queue = queue.then(async () => {
    if (message === "end") return process.exit();
    parentPort?.postMessage(await embed(message.texts));
  });
});
