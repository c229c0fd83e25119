import { existsSync } from "node:fs";
import { join } from "node:path";
import { execa } from "execa";
import type { TestProject } from "vitest/node";
import { buildImage } from "../../src/adapters/sandbox/build-image.ts";
import { PodmanHost } from "../../src/adapters/sandbox/podman-host.ts";
import { systemClock } from "../../src/base/lib/clock.ts";
import { messageOf } from "../../src/base/lib/errors.ts";
import { secret } from "../../src/base/lib/ids.ts";
import { markLabel } from "./sandbox-mark.ts";

/**
 * Image of which sandboxes of tests are made, and the mark that they have in this run; or the reason why there are none.
 */
export type SharedSandbox =
  | { readonly tools: string; readonly browser: string; readonly mark: string }
  | { readonly missing: string };

declare module "vitest" {
  interface ProvidedContext {
    sandbox: SharedSandbox;
  }
}

const project = join(import.meta.dirname, "../..");
const base = "docker.io/library/node:24-trixie-slim";
const tools = "localhost/clevernet-sandbox:tools";
const browser = "localhost/clevernet-sandbox:browser";

/** Every project has its own setup, but the image is made once in a run. */
const run = globalThis as typeof globalThis & { clevernetSandbox?: Promise<SharedSandbox> };

export default async function setup(at: TestProject): Promise<() => Promise<void>> {
  run.clevernetSandbox ??= prepare((line) => at.vitest.logger.log(`sandbox: ${line}`)).then(
    () => ({ tools, browser, mark: secret(8) }),
    (error: unknown) => ({ missing: messageOf(error).slice(-1_000) }),
  );
  const sandbox = await run.clevernetSandbox;
  if ("missing" in sandbox) at.vitest.logger.warn(`Tests of the sandbox are skipped: ${sandbox.missing}.`);
  at.provide("sandbox", sandbox);
  return async () => {
    if ("missing" in sandbox) return;
    const host = new PodmanHost({ podman: "podman", clock: systemClock });
    const left = await host.find({ name: markLabel, value: sandbox.mark });
    for (const { id } of left) await host.remove(id);
    if (left.length > 0) at.vitest.logger.warn(`sandbox: tests have left ${left.length} containers behind.`);
  };
}

/** Makes the images where they are not there yet, or are older than the files that they are made of. */
async function prepare(tell: (line: string) => void): Promise<void> {
  if (process.platform !== "linux" || process.getuid?.() !== 0)
    throw new Error("not root on Linux; as another user, run them where Podman works and root can look from outside");
  const making = execa(join(project, ".bin/sandbox-base"), [base, join(project, "node_modules")], { all: true });
  for await (const line of making.iterable({ from: "all" })) tell(line);
  // Where TLS is inspected, the machine's own authorities know by whom.
  const authorities = "/etc/ssl/certs/ca-certificates.crt";
  const ca = existsSync(authorities) ? authorities : undefined;
  for (const [image, target] of [
    [tools, "tools"],
    [browser, "browser"],
  ] as const)
    for await (const step of buildImage({ podman: "podman", image, target, ca, base })) tell(step);
}
