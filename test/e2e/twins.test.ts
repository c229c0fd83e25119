import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parse, stringify } from "yaml";
import { check } from "../../src/app/operator/check.ts";
import { answerEach, answerTo } from "../support/answers.ts";
import { BridgeProcess } from "../support/bridge-process.ts";
import { quiet } from "../support/faults.ts";
import { freePort } from "../support/free-port.ts";
import { eventually } from "../support/poll.ts";
import { copyEmbedded } from "../support/shared-embedded.ts";
import { Stage } from "../support/stage.ts";
import type { TestUser } from "../support/user.ts";

describe("two bridges with one registration, on different databases", () => {
  let stage: Stage;
  let ann: TestUser;
  let admin: TestUser;
  let control: string;
  let twin: BridgeProcess;
  let [file, twinFile] = ["", ""];

  beforeAll(async () => {
    stage = await Stage.set({ database: "postgres" });
    [ann, admin] = [await stage.user("ann"), await stage.user("admin")];
    stage.model.onEvery(answerEach);
    await stage.bridge.start();
    const bot = `@clevernet:${stage.homeserver.serverName}`;
    const direct = await admin.createDirectRoom(bot);
    const hello = await admin.waitForMessage(direct, ({ sender }) => sender === bot);
    control = hello.body.split("https://matrix.to/#/")[1] ?? "";
    await admin.join(control);
    const { dir } = stage.homeserver;
    [file, twinFile] = [join(dir, "config.yaml"), join(dir, "twin.yaml")];
    const port = await freePort();
    await copyEmbedded(join(dir, "twin"));
    const config = parse(await readFile(file, "utf8")) as { bridge: object };
    const other = { ...config, database: { dir: join(dir, "twin") }, bridge: { ...config.bridge, port } };
    await writeFile(twinFile, stringify(other));
    twin = new BridgeProcess(twinFile, `http://127.0.0.1:${port}`);
  });
  afterAll(async () => {
    await twin?.kill();
    await stage.strike();
  });

  const troubles = async (of: string) => {
    const seen: string[] = [];
    for await (const { id, state, says } of check(of)) if (id === "reach") seen.push(`${state} ${says}`);
    return seen;
  };

  it("the second says so, is not ready, and answers nothing; the first warns, and both are told apart by check", async () => {
    await twin.start({ isReady: false });
    await expect
      .poll(() => twin.log, { timeout: 30_000 })
      .toContain("pushes to another bridge that has our registration");
    const ready = await fetch(`${twin.url}/health/ready`);
    expect([ready.status, await ready.json()]).toEqual([503, expect.objectContaining({ sole: false })]);
    expect(twin.log).not.toContain("Clevernet is ready");
    await admin.waitForMessage(control, ({ body }) => body.includes("a second bridge works with our registration"));
    expect(stage.bridge.log).toContain("a second bridge works with our registration");
    expect((await fetch(`${stage.bridge.url}/health/ready`)).status).toBe(200);
    expect(await troubles(file)).toEqual([expect.stringMatching(/^ok it reaches the bridge, which runs/)]);
    expect(await troubles(twinFile)).toEqual([expect.stringMatching(/^failed the homeserver reaches another bridge/)]);
  }, 60_000);

  it("what people say is answered once, also where both sweep", async () => {
    const room = await stage.directRoom(ann);
    await ann.say(room, "hello");
    await ann.waitForMessage(room, ({ body }) => body === answerTo("hello"));
    await quiet(stage.toBridge);
    // Both sweep when the homeserver comes back.
    await stage.homeserver.synapse.kill();
    const misses = async () => {
      const ready = await fetch(`${twin.url}/health/ready`);
      return ((await ready.json()) as { homeserver: boolean }).homeserver === false;
    };
    await eventually(misses, { within: 30_000, what: "the twin to miss the homeserver" });
    await stage.homeserver.synapse.restart();
    const back = () => twin.log.split("the homeserver is back").length > 1;
    await eventually(back, { within: 30_000, what: "the twin to notice" });
    await sleep(5_000);
    const said = (await ann.messages(room)).map(({ body }) => body);
    expect(said).toEqual(["hello", answerTo("hello")]);
    await stage.check();
  }, 90_000);
});
