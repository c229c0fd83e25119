import { readFile } from "node:fs/promises";
import { homedir, hostname } from "node:os";
import { dirname, join, resolve } from "node:path";
import type { z } from "zod";
import type { SandboxSettings } from "../../adapters/sandbox/open-host.ts";
import type { DemoEnvironment } from "../../base/lib/demo-environment.ts";
import { messageOf, UserError } from "../../base/lib/errors.ts";
import type { RoomId } from "../../base/lib/ids.ts";
import { isObject } from "../../base/lib/json.ts";
import { problemsOf } from "../../base/lib/problems.ts";
import { parseYaml } from "../../base/lib/yaml.ts";
import type { ConfiguredModels } from "../../domain/agents/models.ts";
import type { ConfiguredBudgets, Price } from "../../domain/budget/book.ts";
import type { EmbeddingSettings } from "../../domain/memory/embeddings.ts";
import type { Permissions } from "../../domain/rights/permissions.ts";
import type { ServerSettings } from "../../domain/servers/server-settings.ts";
import { embeddingSettings } from "./embeddings.ts";
import { sandboxSettings } from "./sandbox.ts";
import { type ConfiguredAgent, configSchema } from "./schema.ts";
import { serverSettings } from "./servers.ts";
import { type WebSettings, webSettings } from "./web.ts";

/** config.yaml with its defaults; paths are absolute, URLs without a slash at the end. */
export interface Config {
  /** Path of the file that it was read from. */
  readonly file: string;
  readonly homeserver: { readonly url: string; readonly serverName: string };
  /**
   * `url` is how the homeserver reaches us, `host` and `port` are where we listen; `instance` names this process among
   * those that share a database, the same after each start.
   */
  readonly bridge: { readonly url: string; readonly host: string; readonly port: number; readonly instance: string };
  /** Path of registration.yaml. */
  readonly registration: string;
  readonly database: { readonly dir: string } | { readonly url: string };
  /** `name` is the model of agents that name none. */
  readonly model: { readonly baseUrl: string; readonly apiKey: string | undefined; readonly name: string };
  /** By kind of task, for agents that choose none of a kind. */
  readonly models: ConfiguredModels["models"];
  /** How memory is searched by meaning. */
  readonly embeddings: EmbeddingSettings;
  /** Where the computers of conversations run, and their limits. */
  readonly sandbox: SandboxSettings;
  /** How agents reach the web. */
  readonly web: WebSettings;
  /** Servers of tools. */
  readonly mcp: readonly ServerSettings[];
  /** Limit for all files of an agent, a user or a room together. */
  readonly files: { readonly quotaMegabytes: number };
  /** The largest file that is taken from a room. */
  readonly media: { readonly maxMegabytes: number };
  /** Devices of agents that this process has open at most. */
  readonly encryption: { readonly maxOpenDevices: number };
  /** `history…`: how much is read of what was said in a room before an agent came. */
  readonly memory: {
    readonly ranking: "product" | "seed";
    readonly historyMessages: number;
    readonly historyDays: number;
  };
  readonly permissions: Permissions;
  readonly controlRoom: RoomId | undefined;
  /** Messages per minute that wake agents: of one person, and in one room. */
  readonly limits: { readonly requester: number; readonly room: number };
  /** Per day (UTC). */
  readonly budgets: ConfiguredBudgets;
  /** By the model's name, where the provider reports none. */
  readonly prices: Readonly<Record<string, Price>>;
  readonly agents: readonly ConfiguredAgent[];
  readonly logLevel: string;
  /** Lines that the operator should read at start. */
  readonly warnings: readonly string[];
}

/** Models as agents choose among them. */
export const modelsOf = ({ model: { name }, models }: Config): ConfiguredModels => ({ name, models });

type Environment = Readonly<Record<string, string | undefined>>;

/** Reads the demo's settings from the environment. */
export const demoEnvironment = (env: Environment = process.env): DemoEnvironment => ({
  cacheDir: join(env.XDG_CACHE_HOME || join(homedir(), ".cache"), "clevernet-testbed"),
  openRouterKey: env.OPENROUTER_API_KEY || undefined,
  modelBaseUrl: env.MODEL_BASE_URL || undefined,
  modelName: env.MODEL_NAME || undefined,
  modelKey: env.MODEL_API_KEY || undefined,
});

/**
 * Reads the configuration file. `${NAME}` in a value, outside `agents`, is taken from the environment; a secret may
 * stand in a file of its own, named by its key with `File` behind it.
 * @throws UserError that lists every mistake in it
 */
export const loadConfig = async (file: string, env: Environment = process.env): Promise<Config> => {
  const path = resolve(file);
  const written: unknown = parseYaml(await readConfig(path), path).toJS();
  const problems = new Map<string, string>();
  const value = await readSecrets(expand(written, env, problems), dirname(path), problems);
  const result = configSchema.safeParse(value);
  if (result.success && problems.size === 0) return configOf(result.data, path);
  const shown = await readSecrets(written, dirname(path), new Map());
  const lines = (result.success ? [] : problemsOf(result.error, shown, isSecret))
    .filter(({ path: at }) => !problems.has(at))
    .map(({ line }) => line);
  throw new UserError(
    [`${path} has mistakes:`, ...[...problems.values(), ...lines].map((line) => `  ${line}`)].join("\n"),
  );
};

const readConfig = (path: string): Promise<string> =>
  readFile(path, "utf8").catch((error: unknown) => {
    throw new UserError(
      `${path} cannot be read (${messageOf(error)}). To make one: npm run clevernet -- init --dir ${dirname(path)}`,
    );
  });

const secrets = [
  "model.apiKey",
  "embeddings.apiKey",
  "database.url",
  "web.search.apiKey",
  "web.scrapingFish.apiKey",
] as const;
/** Values that are shown to nobody. */
export const isSecret = (path: string): boolean =>
  secrets.some((secret) => secret === path) || /^mcp\b.*\.(?:headers|env)\b./.test(path);

/** Puts values of the environment in; agents are left alone, since prompts may well hold `${…}`. */
const expand = (value: unknown, env: Environment, problems: Map<string, string>, path = ""): unknown => {
  if (path === "agents") return value;
  if (typeof value === "string") {
    return value.replace(/\$\{(\w+)\}/g, (placeholder, name: string) => {
      if (env[name]) return env[name];
      problems.set(path, `${path}: the environment variable ${name} is not set: set it, or write the value itself`);
      return placeholder;
    });
  }
  if (!isObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => [key, expand(inner, env, problems, path ? `${path}.${key}` : key)]),
  );
};

/** Replaces `…File` by the content of that file, without white space at its end. */
const readSecrets = async (value: unknown, dir: string, problems: Map<string, string>): Promise<unknown> => {
  let read = value;
  for (const secret of secrets) read = await readSecret(read, secret, { secret, dir, problems });
  return read;
};

interface SecretReading {
  /** Path of the secret from the beginning of the configuration. */
  readonly secret: string;
  readonly dir: string;
  readonly problems: Map<string, string>;
}

/** @param path way to the secret from the value on */
const readSecret = async (value: unknown, path: string, reading: SecretReading): Promise<unknown> => {
  if (!isObject(value)) return value;
  const [key = "", ...below] = path.split(".");
  if (below.length > 0)
    return key in value ? { ...value, [key]: await readSecret(value[key], below.join("."), reading) } : value;
  const { secret, dir, problems } = reading;
  const { [`${key}File`]: file, ...rest }: Record<string, unknown> = value;
  if (file === undefined) return value;
  if (rest[key] !== undefined) {
    const outer = secret.slice(0, -key.length - 1);
    problems.set(secret, `${outer}: found both ${key} and ${key}File, expected one of them`);
    return rest;
  }
  if (typeof file !== "string") {
    problems.set(secret, `${secret}File: expected the path of a file, relative to the configuration file`);
    return rest;
  }
  const place = resolve(dir, file);
  try {
    const text = (await readFile(place, "utf8")).trimEnd();
    if (text === "") problems.set(secret, `${secret}File: ${place} is empty: write the secret into it`);
    return { ...rest, [key]: text };
  } catch (error) {
    problems.set(
      secret,
      `${secret}File: ${place} cannot be read (${messageOf(error)}): make this file, or name another`,
    );
    return rest;
  }
};

const configOf = (read: z.output<typeof configSchema>, file: string): Config => {
  const dir = dirname(file);
  const { dir: databaseDir, url: databaseUrl = "" } = read.database;
  const { bridge } = read;
  const data = databaseDir === undefined ? undefined : resolve(dir, databaseDir);
  const isOpen = Object.values(read.permissions).some((level) => level !== "none");
  return {
    ...read,
    file,
    bridge: { ...bridge, instance: bridge.instance ?? `${hostname()}:${bridge.port}` },
    registration: resolve(dir, read.registration),
    database: data === undefined ? { url: databaseUrl } : { dir: data },
    model: { ...read.model, apiKey: read.model.apiKey },
    embeddings: embeddingSettings(read.embeddings, dir, data),
    sandbox: sandboxSettings(read.sandbox, dir),
    web: webSettings(read.web),
    mcp: serverSettings(read.mcp),
    controlRoom: read.controlRoom,
    warnings: isOpen ? [] : ['permissions: nobody may do anything; let somebody in, such as "@you:example.org": admin'],
  };
};
