import { stat } from "node:fs/promises";
import { resolve } from "node:path";
import { buildImage } from "../../adapters/sandbox/build-image.ts";
import { HostError } from "../../adapters/sandbox/host.ts";
import { UserError } from "../../base/lib/errors.ts";
import { loadConfig } from "../config/config.ts";
import { sandboxSection, sandboxSettings } from "../config/sandbox.ts";

export interface BuildOptions {
  /** Path of the configuration. Without such a file, the defaults are meant. */
  readonly config: string;
  readonly tools?: true;
  readonly extra?: readonly string[];
  readonly ca?: string;
  readonly base?: string;
}

/**
 * Makes the image of sandboxes, where the configuration says.
 * @param tell hears each step
 */
export async function buildSandbox(options: BuildOptions, tell: (line: string) => void): Promise<void> {
  const { hosts, image } = (await isFile(options.config))
    ? (await loadConfig(options.config)).sandbox
    : sandboxSettings(sandboxSection.parse({}));
  if (hosts.length === 0) throw new UserError(`sandbox.kind is off in ${resolve(options.config)}: set it to podman.`);
  const { tools, extra = [], ca, base } = options;
  if (ca !== undefined && !(await isFile(ca)))
    throw new UserError(`There is no file ${resolve(ca)} with certificates.`);
  tell(`Making ${image}: some minutes, once. Steps that are finished are kept.`);
  const target = tools ? "tools" : "browser";
  try {
    for (const { engine, name } of hosts) {
      const { podman, connection } = engine;
      if (hosts.length > 1) tell(`On ${name}:`);
      const order = { podman, connection, image, target, extra, ca: ca && resolve(ca), base } as const;
      for await (const step of buildImage(order)) tell(step);
    }
  } catch (error) {
    if (!(error instanceof HostError)) throw error;
    throw new UserError([error.message, ...(error.remedy === undefined ? [] : [`→ ${error.remedy}`])].join("\n"));
  }
  tell(`${image} is ready. To see whether sandboxes work: npm run clevernet -- check`);
}

const isFile = (path: string): Promise<boolean> =>
  stat(path).then(
    (found) => found.isFile(),
    () => false,
  );
