import { mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { oneAtATime } from "../../src/edges/demo/one-at-a-time.ts";

// A process that takes its turn in each folder it is told of, a line each, and tells whether it was alone there. Its
// arguments are to be those of a demo: by these others know that it lives.
for await (const dir of createInterface({ input: process.stdin })) {
  let isAlone = true;
  await oneAtATime(
    dir,
    () => {},
    async () => {
      const inside = join(dir, "inside");
      isAlone = await mkdir(inside).then(
        () => true,
        () => false,
      );
      await sleep(20);
      await rm(inside, { recursive: true, force: true });
    },
  );
  process.stdout.write(`${isAlone}\n`);
}
