import { mkdir, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { UserError } from "../../base/lib/errors.ts";
import { secret } from "../../base/lib/ids.ts";
import { run, runFetching } from "./program.ts";
import { testedSynapse } from "./synapse-command.ts";

/** A busy machine takes its time: what is there and in use must not be taken for missing, and made anew. */
const patienceMs = 60_000;

const has = (python: string, script: string): Promise<boolean> =>
  run(python, ["-I", "-c", script], patienceMs).then(
    () => true,
    () => false,
  );

/**
 * Makes a Python virtual environment with Synapse, or finds the one that was made.
 * @returns path of its Python
 * @throws UserError that says what is missing
 */
export const installWithPip = async (
  cacheDir: string,
  onProgress: (text: string) => void,
  version: string = testedSynapse,
): Promise<string> => {
  const dir = join(cacheDir, `synapse-${version}`);
  const python = join(dir, "bin/python");
  if (await has(python, "import synapse")) return python;
  await checkPython();
  onProgress(`installing Synapse ${version} with pip (once, about half a minute) ...`);
  const making = `${dir}.${secret(4)}`;
  try {
    await mkdir(cacheDir, { recursive: true });
    await run("python3", ["-m", "venv", making], 60_000);
    const pip = ["-m", "pip", "install", "--disable-pip-version-check", "--no-input", "--only-binary", ":all:"];
    await runFetching([join(making, "bin/python"), ...pip, `matrix-synapse==${version}`], {
      what: "pip cannot install matrix-synapse",
      answered: /Downloading|Using cached|Obtaining|Processing/,
      onProgress,
    });
    await rm(dir, { recursive: true, force: true });
    await rename(making, dir);
  } catch (error) {
    await rm(making, { recursive: true, force: true });
    // Somebody else was faster.
    if (!(await has(python, "import synapse"))) throw error;
  }
  return python;
};

const checkPython = async (): Promise<void> => {
  const version = await run("python3", ["-I", "-c", "import sys; print(*sys.version_info[:2], sep='.')"]);
  const [major = 0, minor = 0] = version.split(".").map(Number);
  if (major < 3 || (major === 3 && minor < 10)) throw new UserError(`python3 is ${version}, and 3.10 is needed`);
  if (await has("python3", "import venv, ensurepip")) return;
  throw new UserError("python3 has no venv (on Debian and Ubuntu: apt install python3-venv)");
};
