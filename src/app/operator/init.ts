import { access, constants, mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { createRegistration, rotateTokens, writeRegistration } from "../../adapters/matrix/registration.ts";
import { messageOf, UserError } from "../../base/lib/errors.ts";
import { isUserId, splitUserId } from "../../base/lib/matrix-id.ts";
import { problemsOf } from "../../base/lib/problems.ts";
import { parseYaml } from "../../base/lib/yaml.ts";
import { isActor } from "../../domain/rights/permissions.ts";
import { configSchema } from "../config/schema.ts";

/** Options of `init` on the command line. */
export interface InitOptions {
  readonly dir: string;
  /** URL at which we reach the homeserver. */
  readonly homeserver: string;
  /** Full user id of the first admin; the server in it is the homeserver's name. */
  readonly admin: string;
  /** URL at which the homeserver reaches us. */
  readonly url?: string | undefined;
  readonly modelUrl?: string | undefined;
  readonly model?: string | undefined;
  readonly modelKeyFile?: string | undefined;
  /** A folder for the embedded database, relative to `dir`; or a postgres:// URL. */
  readonly database?: string | undefined;
}

/** The commented example is the template: its comments come with it. */
const template = join(import.meta.dirname, "../../../config.yaml");

/**
 * Writes config.yaml and registration.yaml, with fresh tokens, into a folder.
 * @returns what to tell the operator: what was written, and what to do next
 * @throws UserError when one of the files exists, or when a value cannot be used; nothing is written then
 */
export const init = async (options: InitOptions): Promise<string> => {
  const dir = resolve(options.dir);
  const configFile = join(dir, "config.yaml");
  const registrationFile = join(dir, "registration.yaml");
  await refuseFiles(dir);
  const { text, serverName, url } = await configText(options);
  await mkdir(dir, { recursive: true });
  await writeRegistration(registrationFile, createRegistration({ serverName, url }));
  await writeFile(configFile, text, { flag: "wx", mode: 0o600 });
  return `Written, each readable by you alone:
  ${configFile}
  ${registrationFile}

Next:
  1. Let the homeserver's user read registration.yaml (and enter the folder), for example:
       chgrp matrix-synapse ${dir} ${registrationFile} && chmod 750 ${dir} && chmod 640 ${registrationFile}
     A homeserver in a container reads a copy, or has the file mounted.
  2. Put these two lines into homeserver.yaml, and restart Synapse:
       app_service_config_files:
         - ${registrationFile}
  3. Look through config.yaml, and see whether all is well:
       npm run clevernet -- check --config ${configFile}
  4. Start:
       npm run clevernet -- start --config ${configFile}
`;
};

/** Puts new tokens into the registration of a folder. @returns what to tell the operator */
export const rotateFolderTokens = async (dir: string): Promise<string> => {
  const file = join(resolve(dir), "registration.yaml");
  await rotateTokens(file);
  return `${file} has new tokens.

Next, in this order; nothing is lost meanwhile, as the homeserver sends again what it could not deliver:
  1. Where the homeserver reads a copy of this file, copy it there again.
  2. Restart the homeserver: from then on the old tokens are dead.
  3. Restart Clevernet.
`;
};

/** Throws a UserError where the folder holds one of the files already, or cannot be made or written into. */
export const refuseFiles = async (dir: string): Promise<void> => {
  const folder = resolve(dir);
  for (const name of ["config.yaml", "registration.yaml"]) await refuseExisting(join(folder, name));
  await access(`${await nearestThere(folder)}/`, constants.W_OK | constants.X_OK).catch((error: unknown) => {
    throw new UserError(
      `${folder} cannot be made or written into (${messageOf(error)}). Name another folder, or do this as a user that may.`,
    );
  });
};

/** The path itself, or what is there of it. */
const nearestThere = (path: string): Promise<string> =>
  access(path).then(
    () => path,
    () => (path === dirname(path) ? path : nearestThere(dirname(path))),
  );

const refuseExisting = async (file: string): Promise<void> => {
  const exists = await access(file).then(
    () => true,
    () => false,
  );
  if (exists) throw new UserError(`${file} exists and is not overwritten: name another folder, or move it away.`);
};

const configText = async (options: InitOptions) => {
  const {
    homeserver,
    admin,
    url = "http://127.0.0.1:9009",
    modelUrl,
    model,
    modelKeyFile,
    database = "data",
  } = options;
  if (!isUserId(admin)) throw new UserError(`"${admin}" is no full user id: the admin is named like @you:example.org.`);
  const serverName = splitUserId(admin).server;
  const document = parseYaml(await readFile(template, "utf8"), template);
  document.set("homeserver", document.createNode({ url: homeserver, serverName }));
  document.set("bridge", document.createNode({ url, ...listenAddress(url) }));
  document.set("registration", "registration.yaml");
  document.set(
    "database",
    document.createNode(/^postgres(ql)?:/.test(database) ? { url: database } : { dir: database }),
  );
  const name = model ?? document.getIn(["model", "name"]);
  const baseUrl = modelUrl ?? "https://openrouter.ai/api/v1";
  const key = modelKeyFile
    ? { apiKeyFile: resolve(modelKeyFile) }
    : /^https:\/\/openrouter\.ai\//.test(baseUrl)
      ? { apiKey: `\${OPENROUTER_API_KEY}` }
      : {};
  for (const [setting, value] of Object.entries({ baseUrl, name, ...key })) document.setIn(["model", setting], value);
  const everybody = isActor(serverName) ? serverName : `@*:${serverName}`;
  document.set("permissions", document.createNode({ [admin]: "admin", [everybody]: "chat" }));
  const written: unknown = document.toJS();
  const result = configSchema.safeParse({ ...document.toJS(), model: { baseUrl, name } });
  if (result.success) return { text: document.toString({ lineWidth: 0 }), serverName, url: result.data.bridge.url };
  const lines = problemsOf(result.error, written, (path) => path === "database.url").map(({ line }) => `  ${line}`);
  throw new UserError(["This does not make a configuration:", ...lines].join("\n"));
};

/** On this machine alone where the homeserver is on it as well; otherwise on all of its addresses. */
export const listenAddress = (url: string): { readonly host: string; readonly port: number } => {
  const { hostname, port } = URL.canParse(url) ? new URL(url) : new URL("http://127.0.0.1");
  const isLocal = /^(?:localhost|127\.[\d.]+|\[::1\])$/.test(hostname);
  return { host: isLocal ? "127.0.0.1" : "0.0.0.0", port: port === "" ? 9009 : Number(port) };
};
