import { parentPort } from "node:worker_threads";
import { type Computation, evaluate } from "./evaluate.ts";

// One computation after the other, in a thread that can be ended when one does not end by itself.
parentPort?.on("message", async (computation: Computation) => parentPort?.postMessage(await evaluate(computation)));
