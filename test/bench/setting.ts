import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { stringify } from "yaml";
import { type DatabaseLocation, openDatabase } from "../../src/adapters/database/connection.ts";
import { answerTo } from "../support/answers.ts";
import { BridgeProcess } from "../support/bridge-process.ts";
import { freePort } from "../support/free-port.ts";
import { startTestHomeserver, type TestHomeserver } from "../support/homeserver.ts";
import { type Credentials, register } from "../support/matrix-api.ts";
import { createDatabase } from "../support/postgres.ts";
import { type ModelRequest, type Reply, ScriptedModel, userText } from "../support/scripted-model.ts";
import { answerFresh, freshMessages } from "./fresh.ts";
import { Person } from "./person.ts";

/** Something that answers people in their rooms: the bridge, or the bot beside which it is measured. */
export interface Answerer {
  readonly name: string;
  readonly userId: string;
  readonly pid: number;
  start(options?: { isReady: boolean }): Promise<void>;
  kill(): Promise<void>;
}

/**
 * A homeserver of its own, a model that answers at once, the bridge and the bot, with nothing between them: what a
 * stage of the tests is, without proxies. Everything is removed by `strike`.
 */
export class Setting {
  readonly homeserver: TestHomeserver;
  readonly bridge: BridgeProcess;
  readonly ours: Answerer;
  readonly bot: SyncBot;
  /** When the model was asked about each message, in milliseconds since the epoch. */
  readonly asked = new Map<string, number>();
  readonly #model: ScriptedModel;
  readonly #location: DatabaseLocation;
  readonly #people: Person[] = [];
  readonly #drop: () => Promise<void>;

  /** For the case that this process ends before the setting is struck. */
  readonly #abandon = (): void => {
    this.bridge.signal("SIGKILL");
    this.bot.abandon();
  };

  private constructor(
    parts: Pick<Setting, "homeserver" | "bridge"> & { model: ScriptedModel; location: DatabaseLocation },
    bot: Credentials,
    drop: () => Promise<void>,
  ) {
    const { homeserver, bridge, model, location } = parts;
    this.homeserver = homeserver;
    this.bridge = bridge;
    this.#model = model;
    this.#location = location;
    this.#drop = drop;
    model.onEvery((request) => this.#answer(request));
    this.ours = {
      name: "dir" in location ? "Clevernet, embedded" : "Clevernet, postgres",
      userId: `@agent_helper:${homeserver.serverName}`,
      get pid() {
        return bridge.pid;
      },
      start: (options) => bridge.start(options),
      kill: () => bridge.kill(),
    };
    this.bot = new SyncBot(homeserver.url, bot, model.url);
    process.once("exit", this.#abandon);
  }

  /**
   * Neither bridge nor bot is started yet. `agents`: how many, `helper` among them. `fields`: of each one's agent.json.
   * `permission`: everybody's. `reply`: what the model answers in place of one answer to each message.
   */
  static async set(
    postgresUrl: string | undefined,
    {
      agents = 1,
      fields = {},
      permission = "chat",
      reply,
    }: { agents?: number; fields?: object; permission?: string; reply?: Reply } = {},
  ): Promise<Setting> {
    const port = await freePort();
    const homeserver = await startTestHomeserver({ applicationServicePort: port });
    const model = await new ScriptedModel().start();
    if (reply) model.on(() => true, reply);
    const database = postgresUrl === undefined ? undefined : await createDatabase(postgresUrl);
    const location = database ? { url: database.url } : { dir: join(homeserver.dir, "data") };
    const names = ["helper", ...Array.from({ length: agents - 1 }, (_, index) => `agent${index + 1}`)];
    const owner = `@owner:${homeserver.serverName}`;
    const configFile = join(homeserver.dir, "config.yaml");
    const config = {
      homeserver: { url: homeserver.url, serverName: homeserver.serverName },
      bridge: { url: homeserver.applicationServiceUrl, host: "127.0.0.1", port },
      registration: homeserver.registrationFile,
      database: location,
      embeddings: { kind: "off" },
      model: { baseUrl: model.url, apiKey: "scripted", name: "scripted" },
      permissions: { [`@*:${homeserver.serverName}`]: permission },
      limits: { requester: 100_000, room: 100_000 },
      agents: Object.fromEntries(names.map((name) => [name, { ...fields, owner }])),
    };
    await writeFile(configFile, stringify(config));
    const bridge = new BridgeProcess(configFile, homeserver.applicationServiceUrl);
    const bot = await register(homeserver.url, "bot");
    return new Setting({ homeserver, bridge, model, location }, bot, async () => database?.drop());
  }

  async person(name: string): Promise<Person> {
    const person = await Person.create(this.homeserver.url, name);
    this.#people.push(person);
    return person;
  }

  /** Runs a query, once the bridge is stopped. */
  async query<Row extends object>(text: string): Promise<Row[]> {
    const database = await openDatabase(this.#location);
    try {
      return [...(await database.sql.unsafe<Row[]>(text))];
    } finally {
      await database.close();
    }
  }

  async strike(): Promise<void> {
    process.off("exit", this.#abandon);
    for (const person of this.#people) person.stop();
    await Promise.all([this.bridge.kill(), this.bot.kill()]);
    await this.homeserver.dispose();
    await this.#drop();
    await this.#model.stop();
  }

  #answer(request: ModelRequest) {
    const at = performance.timeOrigin + performance.now();
    const text = userText(request);
    if (!text.includes("<chatInterface")) return answerTo(text);
    const fresh = freshMessages(request);
    for (const body of fresh.bodies) if (!this.asked.has(body)) this.asked.set(body, at);
    return answerFresh(request, fresh);
  }
}

class SyncBot implements Answerer {
  readonly name = "minimal bot";
  readonly userId: string;
  readonly #arguments: readonly string[];
  #child: ChildProcess | undefined;

  constructor(homeserverUrl: string, { accessToken, userId }: Credentials, modelUrl: string) {
    this.userId = userId;
    this.#arguments = [homeserverUrl, accessToken, userId, modelUrl];
  }

  get pid(): number {
    return this.#child?.pid ?? 0;
  }

  async start(): Promise<void> {
    const script = fileURLToPath(import.meta.resolve("./sync-bot.ts"));
    this.#child = spawn(process.execPath, [script, ...this.#arguments], { stdio: ["ignore", "ignore", "inherit"] });
    await once(this.#child, "spawn");
  }

  abandon(): void {
    this.#child?.kill("SIGKILL");
  }

  async kill(): Promise<void> {
    const child = this.#child;
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, "exit");
    child.kill("SIGKILL");
    await ended;
  }
}
