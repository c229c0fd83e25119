import { cp, mkdtemp, readdir, readFile, realpath, rm, symlink, writeFile } from "node:fs/promises";
import { connect } from "node:net";
import { networkInterfaces, tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { execa } from "execa";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { callMatrix } from "../support/matrix-api.ts";
import { ScriptedModel, toolName } from "../support/scripted-model.ts";

const project = join(import.meta.dirname, "../..");
const model = new ScriptedModel();
let dir = "";

/** The demo as a person runs it, with no model in the environment unless one is given. */
const demo = async (args: readonly string[] = [], env: Record<string, string> = {}) => {
  const none = { OPENROUTER_API_KEY: "", MODEL_BASE_URL: "", MODEL_NAME: "", MODEL_API_KEY: "" };
  const result = await execa(process.execPath, ["src/main.ts", "demo", ...args], {
    cwd: dir,
    env: { ...none, ...env },
    reject: false,
    all: true,
    stdin: "ignore",
  });
  return { code: result.exitCode, text: result.all };
};

const inDemo = (file: string): string => join(dir, ".demo", file);
const ports = async (): Promise<number[]> =>
  Object.values(JSON.parse(await readFile(inDemo("demo.json"), "utf8")).ports);
const bridgePid = async (): Promise<number> => Number(await readFile(inDemo("bridge.pid"), "utf8"));
const isAlive = (pid: number): boolean => {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
};
const filesBelow = async (folder: string): Promise<string[]> =>
  (await readdir(folder, { recursive: true, withFileTypes: true }))
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));
const isOpen = (port: number, host: string): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect({ port, host, timeout: 2_000 });
    const settle = (isOpen: boolean) => () => {
      socket.destroy();
      resolve(isOpen);
    };
    socket.on("connect", settle(true)).on("error", settle(false)).on("timeout", settle(false));
  });

beforeAll(async () => {
  dir = await realpath(await mkdtemp(join(tmpdir(), "clevernet-demo-")));
  for (const path of ["src", "migrations", "config.yaml", "package.json"]) {
    await cp(join(project, path), join(dir, path), { recursive: true });
  }
  await symlink(join(project, "node_modules"), join(dir, "node_modules"));
  await model.start();
});

afterAll(async () => {
  await demo(["reset"]);
  await rm(dir, { recursive: true });
  await model.stop();
});

describe("npm run demo (slow: each start waits for a real Synapse, which is fetched where it is missing)", () => {
  it("says with usage that a subcommand does not exist", async () => {
    const { code, text } = await demo(["sya", "hello"]);
    expect(code).toBe(1);
    expect(text).toContain("say <text...>");
  });

  it("is stopped and reset in peace where nothing runs", async () => {
    expect(await demo(["stop"])).toEqual({ code: 0, text: "nothing was running" });
    expect((await demo(["reset"])).code).toBe(0);
  });

  it("cannot be talked to before it runs, and says how to start it", async () => {
    expect(await demo(["say", "hello"])).toEqual({
      code: 1,
      text: "clevernet: The demo is not running. Start it: npm run demo",
    });
  });

  it("starts from nothing, and says plainly that a rehearsal stands in for the model", async () => {
    const { code, text } = await demo();
    expect(text).toContain("@agent_helper:localhost is listening.");
    expect(text).toContain("a rehearsal: a script without any intelligence");
    expect(text).toContain(`process ${await bridgePid()}, log ${inDemo("clevernet.log")}`);
    expect(code).toBe(0);
  }, 300_000);

  it("prints what the agent answers", async () => {
    const { code, text } = await demo(["say", "hello", "there"]);
    expect(text).toContain("I am a rehearsal model");
    expect(text).toContain("You said: “hello there”");
    expect(code).toBe(0);
  });

  it("delegates where it is told to by a command, and tells what came of it", async () => {
    const { text } = await demo(["say", "!delegate clerk use FS_Tree path=agents:/helper"]);
    expect(text).toContain("Helper delegates it to clerk and will answer here.");
    expect(text).toMatch(/The sub-agent answered:\n\n`FS_Tree` answered:\n\n```\nagents:\/helper\nagent\.json /);
    expect((await demo(["say", "!delegate planner What is to be done?"])).text).toContain(
      "I stand in for the sub-agent planner. I was asked: “What is to be done?”",
    );
  });

  it("is as it should be by its own check", async () => {
    const args = ["src/main.ts", "check", "--config", inDemo("config.yaml")];
    const { stdout, exitCode } = await execa(process.execPath, args, { cwd: dir, reject: false });
    expect(stdout).toContain("model: rehearsal answers and calls tools.");
    expect(stdout).not.toMatch(/^\s*[!✗]/m);
    expect(exitCode).toBe(0);
  });

  it("starts nothing twice", async () => {
    const pid = await bridgePid();
    const { text } = await demo();
    expect(text.match(/runs already/g)).toHaveLength(3);
    expect(text).toContain("@agent_helper:localhost is listening.");
    expect(await bridgePid()).toBe(pid);
  });

  it("is started twice at once, and runs once", async () => {
    await demo(["reset"]);
    const starts = await Promise.all([demo(), demo()]);
    for (const { code, text } of starts) expect(code, text).toBe(0);
    expect(starts.filter(({ text }) => text.includes("bridge: runs already"))).toHaveLength(1);
    expect((await demo(["say", "hello"])).text).toContain("You said: “hello”");
  });

  it("prints a password that any Matrix client can use", async () => {
    const { text } = await demo();
    const [, url = "", user, password] = /homeserver (\S+), user (\S+), password (\S+)/.exec(text) ?? [];
    const body = { type: "m.login.password", identifier: { type: "m.id.user", user }, password };
    expect(await callMatrix(url, "", "POST", "v3/login", { body })).toMatchObject({ user_id: "@you:localhost" });
  });

  it("listens on the loopback interface alone", async () => {
    const outside = Object.values(networkInterfaces()).flatMap((addresses = []) =>
      addresses.filter(({ internal, family }) => !internal && family === "IPv4"),
    );
    for (const port of await ports()) {
      expect(await isOpen(port, "127.0.0.1")).toBe(true);
      for (const { address } of outside) expect(await isOpen(port, address)).toBe(false);
    }
  });

  it("keeps everything that it makes in .demo", async () => {
    expect((await readdir(dir)).sort()).toEqual(
      [".demo", "config.yaml", "migrations", "node_modules", "package.json", "src"].sort(),
    );
  });

  it("notices that the bridge was killed with -9, and talks again after a start", async () => {
    process.kill(await bridgePid(), "SIGKILL");
    expect((await demo(["say", "hello"])).text).toContain("The demo is not running.");
    const { text } = await demo();
    expect(text).toContain("bridge: ready");
    expect(text.match(/runs already/g)).toHaveLength(2);
    expect((await demo(["say", "back again"])).text).toContain("You said: “back again”");
  });

  it("shows the end of the log of a bridge that cannot start", async () => {
    const { code, text } = await demo([], { MODEL_BASE_URL: "nonsense", MODEL_NAME: "any" });
    expect(code).toBe(1);
    expect(text).toContain("The bridge has ended as soon as it was started.");
    expect(text).toContain('model.baseUrl: found "nonsense"');
  });

  it("uses the model that the environment names, shows its words safely, and writes its key nowhere", async () => {
    const content = "I am real\u202e";
    model.onEvery((request) => ({ call: toolName(request, "SendMessage"), arguments: { content, final: true } }));
    const key = "sk-not-to-be-found";
    const { text } = await demo([], { MODEL_BASE_URL: model.url, MODEL_NAME: "some/model", MODEL_API_KEY: key });
    expect(text).toContain(`some/model at ${model.url}`);
    expect(text).not.toContain("rehearsal");
    expect(await demo(["say", "hello"])).toEqual({ code: 0, text: "I am real‹U+202E›" });
    expect(model.requests.at(-1)?.headers.authorization).toBe(`Bearer ${key}`);
    for (const file of await filesBelow(join(dir, ".demo")))
      expect(await readFile(file, "latin1"), file).not.toContain(key);
  });

  it("prints an answer that is streamed when it is whole", async () => {
    model.on("slowly", () => ["One", { wait: sleep(2_500) }, " and two."]);
    await demo(["say", '!write agents:/helper/agent.json {"answer":"text","streaming":true}']);
    expect(await demo(["say", "slowly"])).toEqual({ code: 0, text: "One and two." });
  });

  it("stops everything, and says what", async () => {
    const pid = await bridgePid();
    expect(await demo(["stop"])).toEqual({ code: 0, text: "stopped: bridge, homeserver" });
    expect(isAlive(pid)).toBe(false);
    for (const port of await ports()) expect(await isOpen(port, "127.0.0.1")).toBe(false);
  });

  it("leaves a process alone that merely has the old id of the bridge", async () => {
    await writeFile(inDemo("bridge.pid"), `${process.pid}\n`);
    expect((await demo(["stop"])).text).toBe("nothing was running");
  });

  it("forgets everything when it is reset, even damaged", async () => {
    await writeFile(inDemo("demo.json"), "{");
    expect((await demo()).text).toContain("Start over: npm run demo -- reset");
    expect((await demo(["reset"])).code).toBe(0);
    expect(await readdir(dir)).not.toContain(".demo");
  });
});
