import { parentPort } from "node:worker_threads";
import { messageOf } from "../../base/lib/errors.ts";
import { type ReadingJob, readText } from "./read-text.ts";

// One page after the other, in a thread that can be ended when a page was made to take for ever.
parentPort?.on("message", async (job: ReadingJob) => {
  try {
    parentPort?.postMessage({ read: await readText(job) });
  } catch (error) {
    parentPort?.postMessage({ error: messageOf(error) });
  }
});
