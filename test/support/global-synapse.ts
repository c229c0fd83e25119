import type { TestProject } from "vitest/node";
import { installWithPip } from "../../src/edges/demo/python-homeserver.ts";
import { cacheDir } from "./cache-dir.ts";

/** Installs Synapse before many test files want it at once. Where it fails, the first of them tells why. */
export default async function setup(project: TestProject): Promise<void> {
  await installWithPip(cacheDir, (text) => project.vitest.logger.log(text), process.env.TEST_SYNAPSE_VERSION).catch(
    () => {},
  );
}
