import { DeviceId, initAsync, OlmMachine, RequestType, UserId } from "@matrix-org/matrix-sdk-crypto-wasm";
import { answerEach, answerTo } from "../support/answers.ts";
import { callMatrix, register } from "../support/matrix-api.ts";
import { createSecretUser, type SecretUser } from "../support/secret-user.ts";
import { Setting } from "./setting.ts";
import { median, ms, percentile, type Table } from "./table.ts";
import { cpuMs } from "./usage.ts";

const rounds = 4;
const messagesPerRound = 12;
const people = 100;
const devicesEach = 3;
const laterMessages = 10;

/** Encrypted rooms beside plain ones, in one run: the same person, the same client, by turns. */
export async function encryption(postgresUrl: string | undefined): Promise<Table[]> {
  const tables: Table[] = [];
  for (const url of [undefined, ...(postgresUrl === undefined ? [] : [postgresUrl])])
    tables.push(...(await measure(url)));
  return tables;
}

async function measure(postgresUrl: string | undefined): Promise<Table[]> {
  const setting = await Setting.set(postgresUrl, { agents: 5, reply: answerEach });
  const ann = await createSecretUser(setting.homeserver, "ann");
  try {
    await setting.bridge.start();
    return [await beside(setting, ann), await crowd(setting, ann)];
  } finally {
    ann.stop();
    await setting.strike();
  }
}

const helper = ({ homeserver }: Setting) => `@agent_helper:${homeserver.serverName}`;

async function roomOf(ann: SecretUser, agents: readonly string[], options: object = {}): Promise<string> {
  const room = await ann.createRoom({ preset: "trusted_private_chat", is_direct: true, invite: agents, ...options });
  for (const agent of agents) await ann.waitForMembership(room, "join", agent);
  return room;
}

let said = 0;

/** Milliseconds from when a message is sent until its answer is read. */
async function ask(ann: SecretUser, room: string, agent: string): Promise<number> {
  const text = `message ${++said}`;
  await ann.mention(room, agent, text);
  const sent = performance.now();
  await ann.waitForMessage(room, ({ body }) => body === answerTo(text), { within: 60_000 });
  return performance.now() - sent;
}

interface Way {
  readonly name: string;
  readonly room: string;
  readonly isNewKey: boolean;
  readonly goal: string;
  readonly times: number[];
  readonly cpu: number[];
}

async function beside(setting: Setting, ann: SecretUser): Promise<Table> {
  const agent = helper(setting);
  const agents = [
    agent,
    ...Array.from({ length: 4 }, (_, n) => `@agent_agent${n + 1}:${setting.homeserver.serverName}`),
  ];
  const way = (name: string, room: string, goal: string, isNewKey = false): Way => ({
    name,
    room,
    isNewKey,
    goal,
    times: [],
    cpu: [],
  });
  const [plain, secret, five] = [
    await roomOf(ann, [agent], { initial_state: [] }),
    await roomOf(ann, [agent]),
    await roomOf(ann, agents),
  ];
  const ways = [
    way("plain", plain, ""),
    way("encrypted, known key", secret, "≤ 1.6, ≤ +15 ms, ≤ 2 kB"),
    way("encrypted, new key", secret, "≤ 2.2", true),
    way("five agents, known key", five, ""),
    way("five agents, new key", five, "≤ 8.8", true),
  ];
  for (let warm = 0; warm < 5; warm++) for (const { room } of ways) await ask(ann, room, agent);
  for (let round = 0; round < rounds; round++) {
    for (const { isNewKey, room, times, cpu } of ways) {
      const before = await cpuMs(setting.bridge.pid);
      for (let n = 0; n < messagesPerRound; n++) {
        if (isNewKey) await ann.forgetSession(room);
        times.push(await ask(ann, room, agent));
      }
      cpu.push(((await cpuMs(setting.bridge.pid)) - before) / messagesPerRound);
    }
  }
  const base = ways[0] as Way;
  const rows: string[][] = [];
  for (const { name, room, isNewKey, goal, times, cpu } of ways) {
    rows.push([
      name,
      ms(percentile(times, 0.5)),
      ms(percentile(times, 0.95)),
      (percentile(times, 0.5) / percentile(base.times, 0.5)).toFixed(2),
      ms(median(cpu)),
      ms(median(cpu) - median(base.cpu)),
      await written(setting, async () => {
        if (isNewKey) await ann.forgetSession(room);
        await ask(ann, room, agent);
      }),
      goal,
    ]);
  }
  return {
    title: `Encryption of ${setting.ours.name}: sent → answer read, one message at a time, the model answers at once`,
    columns: ["room", "p50", "p95", "÷ plain", "CPU per message", "more than plain", "devices write", "goals"],
    rows,
    note: "CPU of the bridge; devices write: rows of what they remember, for a message and its answer",
  };
}

/** Bytes that devices write for a message and its answer; on PostgreSQL only. */
async function written(setting: Setting, job: () => Promise<void>): Promise<string> {
  if (!setting.ours.name.includes("postgres")) return "";
  const count = 5;
  await setting.query(`create table if not exists written (bytes bigint);
    create or replace function note_written() returns trigger language plpgsql as $$
      begin insert into written values (length(new.key) + length(new.value)); return null; end $$;
    create or replace trigger note_written after insert or update on crypto_rows for each row execute function note_written();
    truncate written`);
  for (let n = 0; n < count; n++) await job();
  const [row] = await setting.query<{ bytes: string }>("select coalesce(sum(bytes), 0) as bytes from written");
  await setting.query("drop trigger note_written on crypto_rows");
  return `${(Number(row?.bytes) / count / 1_000).toFixed(1)} kB`;
}

/** The first message into a room with many devices, and those after it. */
async function crowd(setting: Setting, ann: SecretUser): Promise<Table> {
  const agent = helper(setting);
  const room = await roomOf(ann, [agent], { preset: "public_chat", is_direct: false });
  await initAsync();
  for (let n = 0; n < people; n++) await enter(setting.homeserver.url, room, `crowd${n}`);
  const before = await cpuMs(setting.bridge.pid);
  const first = await ask(ann, room, agent);
  const cpuFirst = (await cpuMs(setting.bridge.pid)) - before;
  const times: number[] = [];
  for (let n = 0; n < laterMessages; n++) times.push(await ask(ann, room, agent));
  const cpu = ((await cpuMs(setting.bridge.pid)) - before - cpuFirst) / laterMessages;
  return {
    title: `Encryption of ${setting.ours.name}: a room of ${people + 1} people with ${people * devicesEach + 1} devices`,
    columns: ["message", "sent → answer read", "CPU", "goal"],
    rows: [
      ["first", ms(first), ms(cpuFirst), "≤ 2.5 s"],
      ["next (p50)", ms(percentile(times, 0.5)), ms(cpu), "≤ 200 ms"],
    ],
  };
}

/** Somebody joins with devices to which everybody can write, and who read nothing. */
async function enter(url: string, room: string, name: string): Promise<void> {
  const first = await register(url, name);
  const credentials = [first];
  const identifier = { type: "m.id.user", user: first.userId };
  while (credentials.length < devicesEach) {
    const body = { type: "m.login.password", identifier, password: `password-${name}` };
    const { access_token, device_id } = await callMatrix(url, "", "POST", "v3/login", { body });
    credentials.push({ userId: first.userId, accessToken: String(access_token), deviceId: String(device_id) });
  }
  for (const { accessToken, deviceId, userId } of credentials) {
    const machine = await OlmMachine.initialize(new UserId(userId), new DeviceId(deviceId));
    const requests = (await machine.outgoingRequests()) as { type: RequestType; body: string }[];
    const upload = requests.find(({ type }) => type === RequestType.KeysUpload);
    await callMatrix(url, accessToken, "POST", "v3/keys/upload", { body: JSON.parse(upload?.body ?? "{}") });
    machine.close();
  }
  await callMatrix(url, first.accessToken, "POST", `v3/join/${encodeURIComponent(room)}`, { body: {} });
}
