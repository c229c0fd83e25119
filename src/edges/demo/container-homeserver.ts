import { userInfo } from "node:os";
import { digest } from "../../base/lib/ids.ts";
import type { HomeserverSettings } from "./homeserver-config.ts";
import { run, runFetching } from "./program.ts";
import { pythonArguments, type SynapseCommand, testedSynapse } from "./synapse-command.ts";

/** Name of the image that holds a version of Synapse. */
export const imageOf = (version: string = testedSynapse): string => `docker.io/matrixdotorg/synapse:v${version}`;

/**
 * Fetches an image unless the machine has it.
 * @throws UserError when the engine or the registry does not answer
 */
export const pullImage = async (
  engine: "podman" | "docker",
  image: string,
  onProgress: (text: string) => void,
): Promise<void> => {
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
  { image, dir, registrations }: Pick<HomeserverSettings, "dir" | "registrations"> & { readonly image: string },
  configFile: string,
  isDetached: boolean,
): SynapseCommand => {
  const name = `clevernet-homeserver-${digest(dir)
    .replaceAll(/[^a-zA-Z0-9]/g, "")
    .slice(0, 12)}`;
  const { uid, gid } = userInfo();
  const volumes = [`${dir}:${dir}`, ...registrations.map((file) => `${file}:${file}:ro`)];
  const args = [
    "run",
    "--rm",
    ...(isDetached ? [] : ["--interactive"]),
    ...["--name", name],
    ...["--network", "host"],
    ...["--security-opt", "label=disable"],
    // In Podman root of the container is already the user who runs it.
    ...(engine === "docker" ? ["--user", `${uid}:${gid}`] : []),
    ...volumes.flatMap((volume) => ["--volume", volume]),
    ...["--entrypoint", "python3", image],
    ...pythonArguments(configFile, isDetached),
  ];
  return { file: engine, args, container: { engine, name } };
};
