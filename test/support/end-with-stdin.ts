import { isMainThread } from "node:worker_threads";

// Imported by a process before its own code: it ends when whoever started it is gone, however that went.
if (isMainThread) {
  process.stdin.on("end", () => process.kill(process.pid, "SIGKILL"));
  process.stdin.resume().unref();
}
