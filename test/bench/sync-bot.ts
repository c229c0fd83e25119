import { argv } from "node:process";

// The least that answers: long-polls /sync, asks the model, sends its text. It stores nothing, so it forgets what it
// had not answered when it ends, and it skips what was said before it began.
const [homeserver, token, self, model] = argv.slice(2);
const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
const filter = encodeURIComponent(JSON.stringify({ presence: { types: [] }, room: { timeline: { limit: 100 } } }));
let sent = Date.now();
/** Synapse gives the answer to a first sync again, for two minutes, to whoever asks for exactly the same. */
const firstTimeout = sent % 1000;

interface Sync {
  readonly next_batch: string;
  readonly rooms?: {
    readonly invite?: Readonly<Record<string, unknown>>;
    readonly join?: Readonly<Record<string, { readonly timeline: { readonly events: readonly Event[] } }>>;
  };
}

interface Event {
  readonly type: string;
  readonly sender: string;
  readonly content: { readonly body: string };
}

async function matrix(method: string, path: string, body?: object): Promise<Sync> {
  const request = { method, headers, ...(body && { body: JSON.stringify(body) }) };
  return (await fetch(`${homeserver}/_matrix/client/v3/${path}`, request)).json() as Promise<Sync>;
}

async function ask(content: string): Promise<string> {
  const body = JSON.stringify({ model: "scripted", stream: true, messages: [{ role: "user", content }] });
  const response = await fetch(`${model}/chat/completions`, { method: "POST", headers, body });
  const chunks = (await response.text()).match(/(?<=^data: )\{.*/gm) ?? [];
  return chunks.map((chunk) => JSON.parse(chunk).choices[0]?.delta.content ?? "").join("");
}

async function answerAll(roomId: string, events: readonly Event[]): Promise<void> {
  const room = `rooms/${encodeURIComponent(roomId)}`;
  for (const { type, sender, content } of events) {
    if (type !== "m.room.message" || sender === self) continue;
    await matrix("PUT", `${room}/send/m.room.message/${++sent}`, { msgtype: "m.text", body: await ask(content.body) });
  }
}

for (let since = ""; ; ) {
  const { rooms, next_batch } = await matrix(
    "GET",
    `sync?filter=${filter}&timeout=${since ? `20000&since=${since}` : firstTimeout}`,
  );
  for (const roomId of Object.keys(rooms?.invite ?? {})) await matrix("POST", `join/${encodeURIComponent(roomId)}`, {});
  const joined = since === "" ? [] : Object.entries(rooms?.join ?? {});
  await Promise.all(joined.map(([roomId, { timeline }]) => answerAll(roomId, timeline.events)));
  since = next_batch;
}
