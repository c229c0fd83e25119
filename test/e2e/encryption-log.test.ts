import { afterEach, expect, it } from "vitest";
import { encryptFile } from "../../src/adapters/matrix/encrypted-file.ts";
import { answerEach, answerTo } from "../support/answers.ts";
import { upload } from "../support/media.ts";
import { eventually } from "../support/poll.ts";
import { createSecretUser, type SecretUser } from "../support/secret-user.ts";
import { Stage } from "../support/stage.ts";

let stage: Stage;
let ann: SecretUser;
afterEach(async () => {
  ann?.stop();
  await stage?.strike();
});

/** Keys and other secrets in what devices remember: names of users, rooms and events are none. */
const secretsIn = (text: string): string[] => text.match(/(?<![$\w+/-])[\w+/-]{43,}/g) ?? [];

/** A talk with a message, a new session, a file and a device that is made anew. Returns all secrets there were. */
async function talk(logLevel: string): Promise<{ secrets: string[]; log: () => string }> {
  stage = await Stage.set({ database: "postgres", config: { logLevel } });
  stage.model.onEvery(answerEach);
  await stage.bridge.start();
  ann = await createSecretUser(stage.homeserver, "ann");
  const room = await stage.directRoom(ann);
  const secrets = new Set<string>();
  const gather = async () => {
    for (const { text } of await stage.query<{ text: string }>(
      "select value as text from crypto_rows union all select identity::text from crypto_machines",
    ))
      for (const found of secretsIn(text)) secrets.add(found);
  };
  const asks = async (text: string) => {
    await ann.say(room, text);
    await ann.waitForMessage(room, ({ body }) => body === answerTo(text), { within: 40_000 });
    await gather();
  };
  await asks("the apricot is ripe");
  await ann.forgetSession(room);
  await asks("the apricot is sweet");
  const { bytes, keys } = encryptFile(Buffer.from("where the apricot grows"));
  secrets.add(String((keys.key as { k: string }).k));
  const url = await upload(stage.homeserver, ann, bytes);
  const id = await ann.say(room, "map.txt", { msgtype: "m.file", file: { ...keys, url } });
  const kept = () => stage.query(`select 1 from files where event_id = '${id}'`);
  await eventually(async () => (await kept()).length > 0, { what: "the file to be kept" });
  await stage.bridge.stop();
  await stage.query("delete from crypto_rows");
  await stage.bridge.start();
  await ann.forgetSession(room);
  await asks("the apricot is gone");
  await stage.bridge.stop();
  return { secrets: [...secrets], log: () => stage.bridge.log };
}

it("at `trace` no key of a device, of an identity or of a file stands in the log", async () => {
  const { log, secrets } = await talk("trace");
  expect(secrets.length).toBeGreaterThan(20);
  expect(log()).toContain("the apricot is ripe");
  expect(secrets.filter((secret) => log().includes(secret))).toEqual([]);
}, 120_000);

it("at `debug` nothing that was said in an encrypted room stands in the log", async () => {
  const { log } = await talk("debug");
  expect(log()).toContain("an event concerns an agent");
  expect(log()).not.toContain("apricot");
}, 120_000);
