import { Runner } from "../../src/adapters/sandbox/runner.ts";
import { systemClock } from "../../src/base/lib/clock.ts";
import { localHost } from "./sandbox-host.ts";

// A process that runs a command in a sandbox and copies its output to its own: to be killed in the middle.
const [, , id = "", boot = "", call = "", script = "", whole] = process.argv;
const runner = new Runner({ connect: () => localHost().connect(id), clock: systemClock });
const spec = { id: call, boot, argv: ["bash", "-c", script], seconds: 60, isWhole: whole !== undefined } as const;
for await (const { data } of runner.run(spec))
  await new Promise<void>((resolve) => void process.stdout.write(data, () => resolve()));
await runner.close();
