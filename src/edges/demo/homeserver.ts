import { connect } from "node:net";
import { UserError } from "../../base/lib/errors.ts";
import { containerCommand, imageOf, pullImage } from "./container-homeserver.ts";
import { type HomeserverSettings, writeHomeserverConfig } from "./homeserver-config.ts";
import { Homeserver, type Launch } from "./homeserver-process.ts";
import { installWithPip } from "./python-homeserver.ts";
import { pythonArguments, type SynapseCommand, testedSynapse } from "./synapse-command.ts";

export interface StartOptions extends HomeserverSettings {
  /** Absolute path of a folder for the installed Synapse; may be shared by many homeservers. */
  readonly cacheDir: string;
  /** Lets it go on when this process ends, so that `findRunning` finds it. Default: it ends with this process. */
  readonly isDetached?: boolean;
  /** Version of Synapse. Default: the one that this release was tested with. */
  readonly version?: string | undefined;
  readonly onProgress: (text: string) => void;
}

type Way = (options: StartOptions, configFile: string, isDetached: boolean) => Promise<SynapseCommand>;

const python: Way = async ({ cacheDir, onProgress, version }, configFile, isDetached) => ({
  file: await installWithPip(cacheDir, onProgress, version),
  args: pythonArguments(configFile, isDetached),
});

const container =
  (engine: "podman" | "docker"): Way =>
  async (options, configFile, isDetached) => {
    const image = imageOf(options.version);
    await pullImage(engine, image, options.onProgress);
    return containerCommand(engine, { ...options, image }, configFile, isDetached);
  };

const ways: readonly [name: string, way: Way][] = [
  ["Python", python],
  ["Podman", container("podman")],
  ["Docker", container("docker")],
];

/**
 * Starts Synapse from a Python virtual environment or, where that cannot be, in Podman or Docker. Resolves when it
 * answers. Which way fails, and why, is said to `onProgress`.
 * @throws UserError when the port is taken, or no way works: it says what to install
 */
export const startHomeserver = async (options: StartOptions): Promise<Homeserver> => {
  const { dir, port, serverName, onProgress, version = testedSynapse, isDetached = false } = options;
  if (await isTaken(port)) throw new UserError(`Port ${port} is used by another program: stop it, or choose another.`);
  const configFile = await writeHomeserverConfig(options);
  const reasons: string[] = [];
  for (const [name, way] of ways) {
    try {
      const command = await way(options, configFile, isDetached);
      onProgress(`starting Synapse ${version} (${name}) ...`);
      const launch: Launch = { ...command, dir, port, serverName, detached: isDetached };
      const homeserver = new Homeserver(launch);
      await homeserver.restart();
      return homeserver;
    } catch (error) {
      if (!(error instanceof UserError)) throw error;
      reasons.push(`${name}: ${error.message}`);
      onProgress(`not with ${name}: ${error.message}`);
    }
  }
  const remedy = "Install one of these: Python 3.10 or newer with venv, and a way to PyPI; Podman; Docker.";
  throw new UserError(["Synapse cannot be run on this machine.", ...reasons, remedy].join("\n"));
};

/** The detached homeserver of a folder, where it runs and answers. */
export const findRunning = (dir: string): Promise<Homeserver | undefined> => Homeserver.find(dir);

const isTaken = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1");
    const settle = (wasTaken: boolean): void => {
      socket.destroy();
      resolve(wasTaken);
    };
    socket.on("connect", () => settle(true)).on("error", () => settle(false));
  });
