import { setTimeout as sleep } from "node:timers/promises";
import { type ModelRequest, newMessages, toolName } from "../support/scripted-model.ts";
import { answer, callsOf, roomOf } from "../support/sight.ts";
import type { Person } from "./person.ts";
import { Setting } from "./setting.ts";
import { ms, percentile, type Table } from "./table.ts";

const questions = 60;
const warm = 10;
/** Somebody reads the card. Meanwhile its signs come, and the homeserver tells the bridge of all that. */
const readingMs = 500;

interface TimelineEvent {
  readonly event_id: string;
  readonly content: Readonly<Record<string, unknown>>;
}

/** One approval after the other: until the operation begins. */
export async function approval(postgresUrl: string | undefined): Promise<Table[]> {
  const tables: Table[] = [];
  for (const url of [undefined, ...(postgresUrl === undefined ? [] : [postgresUrl])]) {
    const setting = await Setting.set(url, { fields: { mode: "read" }, permission: "operate", reply });
    try {
      tables.push(await measure(setting));
    } finally {
      await setting.strike();
    }
  }
  return tables;
}

/** Wants to write a file, and says when it is done. */
function reply(request: ModelRequest) {
  const text = newMessages(request).at(-1)?.body ?? "";
  if (callsOf(request).length > 0) return answer(request, `done ${text}`);
  return {
    call: toolName(request, "FS_WriteFile"),
    arguments: { path: `rooms:/${roomOf(request)}/notes.md`, content: text },
  };
}

async function measure(setting: Setting): Promise<Table> {
  await setting.bridge.start();
  const [ann, ben] = await Promise.all([setting.person("ann"), setting.person("ben")]);
  const hops = await hop(ann, ben);
  const room = await ann.roomWith(setting.ours.userId);
  const sentAt = new Map<string, number>();
  for (let n = 0; n < warm + questions; n++) {
    await hops.travel();
    await ann.say(room, `question ${n}`);
    const card = await newestCard(ann, room, n);
    await sleep(readingMs);
    const at = Date.now();
    const content = { "m.relates_to": { rel_type: "m.annotation", event_id: card, key: "✅" } };
    const done = ann.hears(setting.ours.userId, `done question ${n}`);
    const sign = await ann.api("PUT", `v3/rooms/${encodeURIComponent(room)}/send/m.reaction/sign${n}`, {
      body: content,
    });
    if (n >= warm) sentAt.set(String(sign.event_id), at);
    await done;
  }
  await setting.bridge.stop();
  const rows = await setting.query<{ sign: string; stored: number; started: number }>(
    `select e.event_id as sign, extract(epoch from e.received_at)::float8 * 1000 as stored,
       extract(epoch from p.started_at)::float8 * 1000 as started
     from operations p join outbox o on o.key = p.card_key
       join events e on e.type = 'm.reaction' and e.content->'m.relates_to'->>'event_id' = o.event_id and e.sender = '${ann.id}'`,
  );
  const measured = rows.flatMap((row) => {
    const at = sentAt.get(row.sign);
    return at === undefined ? [] : { whole: row.started - at, ours: row.started - row.stored };
  });
  const bare = hops.times.slice(warm);
  const line = (name: string, times: readonly number[]) => [
    name,
    ms(percentile(times, 0.5)),
    ms(percentile(times, 0.95)),
  ];
  const whole = measured.map((one) => one.whole);
  return {
    title: `Approval with ${setting.ours.name}: ✅ sent → operation begins, ${measured.length} one after the other`,
    columns: ["", "p50", "p95"],
    rows: [
      line("✅ sent → operation begins", whole),
      line("a user's message, sent → seen", bare),
      [
        "beyond the homeserver's own",
        ms(percentile(whole, 0.5) - percentile(bare, 0.5)),
        ms(percentile(whole, 0.95) - percentile(bare, 0.95)),
      ],
      line(
        "✅ stored → operation begins",
        measured.map((one) => one.ours),
      ),
    ],
    note: "goal: 95 of 100 begin within 50 ms beyond the homeserver's own latency",
  };
}

async function hop(ann: Person, ben: Person) {
  const body = { preset: "public_chat" };
  const room = String((await ann.api("POST", "v3/createRoom", { body })).room_id);
  await ben.join(room);
  const times: number[] = [];
  let n = 0;
  const travel = async (): Promise<void> => {
    const text = `hop ${++n}`;
    const seen = ben.hears(ann.id, text);
    const start = performance.now();
    await ann.say(room, text);
    times.push((await seen) - start);
  };
  return { times, travel };
}

async function newestCard(ann: Person, room: string, n: number): Promise<string> {
  const query = { dir: "b", limit: "8", filter: JSON.stringify({ types: ["m.room.message"] }) };
  for (const deadline = performance.now() + 30_000; performance.now() < deadline; ) {
    const page = await ann.api("GET", `v3/rooms/${encodeURIComponent(room)}/messages`, { query });
    const card = (page.chunk as TimelineEvent[]).find(
      ({ content }) => "org.clevernet.operation" in content && String(content.body).includes(`"question ${n}"`),
    );
    if (card) return card.event_id;
  }
  throw new Error(`no card for question ${n}`);
}
