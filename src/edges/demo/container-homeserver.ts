import { userInfo } from "node:os";
import { digest } from "../../base/lib/ids.ts";
import type { HomeserverSettings } from "./homeserver-config.ts";
import { run, runFetching } from "./program.ts";
import { pythonArguments, type SynapseCommand, synapseVersion } from "./synapse-command.ts";

const image = `docker.io/matrixdotorg/synapse:v${synapseVersion}`;

/**
 * Fetches Synapse's image unless the machine has it.
 * @throws UserError when the engine or the registry does not answer
 */
export const pullImage = async (engine: "podman" | "docker", onProgress: (text: string) => void): Promise<void> => {
  await run(engine, ["version"]);
  const present = await run(engine, ["image", "inspect", image]).catch(() => undefined);
  if (present !== undefined) return;
  onProgress(`fetching ${image} (once) ...`);
  await runFetching([engine, "pull", image], {
    what: `${image} cannot be fetched`,
    answered: /Getting image source|Copying|Pulling from/,
    onProgress,
  });
};

/** Runs Synapse in a container that has the machine's network, and its folder at the same path. */
export const containerCommand = (
  engine: "podman" | "docker",
  settings: HomeserverSettings,
  configFile: string,
  detached: boolean,
): SynapseCommand => {
  const { dir, registrations } = settings;
  const name = `clevernet-homeserver-${digest(dir)
    .replaceAll(/[^a-zA-Z0-9]/g, "")
    .slice(0, 12)}`;
  const { uid, gid } = userInfo();
  const volumes = [`${dir}:${dir}`, ...registrations.map((file) => `${file}:${file}:ro`)];
  const args = [
    "run",
    "--rm",
    ...(detached ? [] : ["--interactive"]),
    ...["--name", name],
    ...["--network", "host"],
    ...["--security-opt", "label=disable"],
    // In Podman root of the container is already the user who runs it.
    ...(engine === "docker" ? ["--user", `${uid}:${gid}`] : []),
    ...volumes.flatMap((volume) => ["--volume", volume]),
    ...["--entrypoint", "python3", image],
    ...pythonArguments(configFile, detached),
  ];
  return { file: engine, args, container: { engine, name } };
};
