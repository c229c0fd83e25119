import { access, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createRegistration, writeRegistration } from "../../adapters/matrix/registration.ts";
import type { DemoEnvironment } from "../../base/lib/demo-environment.ts";
import { UserError } from "../../base/lib/errors.ts";
import { digest } from "../../base/lib/ids.ts";
import { parseYaml } from "../../base/lib/yaml.ts";
import { type DemoState, demoDir } from "./demo-state.ts";

export const serverName = "localhost";
export const configFile = join(demoDir, "config.yaml");
export const registrationFile = join(demoDir, "registration.yaml");

/** The commented example is the template; its model and its agent are the demo's. */
const template = join(import.meta.dirname, "../../../config.yaml");

/** The model that the agent thinks with. */
export interface DemoModel {
  /** A script stands in for it. */
  readonly isRehearsal: boolean;
  /** The section of config.yaml: the key is not in it, but the name of the variable that holds it. */
  readonly section: { readonly baseUrl: string; readonly apiKey?: string; readonly name: string };
  readonly key: string | undefined;
}

/**
 * The model that the environment names, else the rehearsal.
 * @throws UserError when it names one by half
 */
export const chooseModel = async (environment: DemoEnvironment, { ports }: DemoState): Promise<DemoModel> => {
  const { openRouterKey, modelBaseUrl: baseUrl, modelName: name, modelKey } = environment;
  if (baseUrl) {
    if (!name)
      throw new UserError("MODEL_BASE_URL is set, and MODEL_NAME is not: set it to the name of a model there.");
    const apiKey = modelKey === undefined ? {} : { apiKey: `\${MODEL_API_KEY}` };
    return { isRehearsal: false, section: { baseUrl, ...apiKey, name }, key: modelKey };
  }
  if (openRouterKey) {
    const example = (await readTemplate()).getIn(["model", "name"]);
    const section = {
      baseUrl: "https://openrouter.ai/api/v1",
      apiKey: `\${OPENROUTER_API_KEY}`,
      name: name ?? String(example),
    };
    return { isRehearsal: false, section, key: openRouterKey };
  }
  if (name) {
    throw new UserError(
      "MODEL_NAME is set, and neither MODEL_BASE_URL nor OPENROUTER_API_KEY is: set one, or unset it.",
    );
  }
  return {
    isRehearsal: true,
    section: { baseUrl: `http://127.0.0.1:${ports.model}/v1`, name: "rehearsal" },
    key: undefined,
  };
};

/**
 * Writes config.yaml anew, and registration.yaml where there is none.
 * @returns digest of all that a bridge is started with
 */
export const writeDemoConfig = async ({ ports }: DemoState, model: DemoModel): Promise<string> => {
  const url = `http://127.0.0.1:${ports.bridge}`;
  const isRegistered = await access(registrationFile).then(
    () => true,
    () => false,
  );
  if (!isRegistered) await writeRegistration(registrationFile, createRegistration({ serverName, url }));
  const document = await readTemplate();
  const set = (section: string, value: unknown) => document.set(section, document.createNode(value));
  set("homeserver", { url: `http://127.0.0.1:${ports.homeserver}`, serverName });
  set("bridge", { url, host: "127.0.0.1", port: ports.bridge });
  set("registration", "registration.yaml");
  set("database", { dir: "data" });
  // It fetches no more than it cannot do without.
  set("embeddings", { kind: "off" });
  set("sandbox", { kind: "off" });
  set("model", model.section);
  set("permissions", { [`@you:${serverName}`]: "admin" });
  // So that every tool there is can be tried; the example is more careful.
  document.setIn(["agents", "helper", "mode"], "update");
  const text = document.toString({ lineWidth: 0 });
  await writeFile(configFile, text, { mode: 0o600 });
  return digest(text, model.key ?? "");
};

const readTemplate = async () => parseYaml(await readFile(template, "utf8"), template);
