import { createInterface } from "node:readline";
import { lockDirectory } from "../../src/adapters/database/lock.ts";

// A process that locks each folder it is told of, a line each, and tells whether it got it.
for await (const dir of createInterface({ input: process.stdin })) {
  const isLocked = await lockDirectory(dir).then(
    () => true,
    () => false,
  );
  process.stdout.write(`${isLocked}\n`);
}
