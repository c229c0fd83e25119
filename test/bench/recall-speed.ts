import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Database, type DatabaseLocation, openDatabase } from "../../src/adapters/database/connection.ts";
import { migrate } from "../../src/adapters/database/migrate.ts";
import type { UserId } from "../../src/base/lib/ids.ts";
import { MemoryRecall } from "../../src/domain/memory/recall.ts";
import { InteractionVectors } from "../../src/domain/tables/interaction-vectors.ts";
import { MemoryUpkeep } from "../../src/domain/tables/memory-upkeep.ts";
import { createDatabase } from "../support/postgres.ts";
import { addAgent, newRoom, setMember } from "../support/rows.ts";
import { ms, percentile, type Table } from "./table.ts";

const model = { model: "random", dimensions: 384 };
const questions = 200;
const wordsKnown = 20_000;
const wordsSaid = 12;

interface Size {
  readonly name: string;
  readonly agents: number;
  readonly interactions: number;
  readonly isEmbedded: boolean;
  readonly goal: string;
}

const sizes: readonly Size[] = [
  { name: "100,000 of one agent, embedded", agents: 1, interactions: 100_000, isEmbedded: true, goal: "≤ 40 ms" },
  { name: "100,000 of one agent, postgres", agents: 1, interactions: 100_000, isEmbedded: false, goal: "≤ 20 ms" },
  { name: "1,000,000 of 1,000, postgres", agents: 1_000, interactions: 1_000_000, isEmbedded: false, goal: "≤ 60 ms" },
];

/** Time of a recall in a large memory of random words and vectors. */
export async function recallSpeed(postgresUrl: string | undefined): Promise<Table> {
  const rows: string[][] = [];
  for (const size of sizes) {
    if (!size.isEmbedded && postgresUrl === undefined) continue;
    const own = size.isEmbedded || postgresUrl === undefined ? undefined : await createDatabase(postgresUrl);
    const dir = own ? undefined : await mkdtemp(join(tmpdir(), "clevernet-recall-speed-"));
    try {
      rows.push([size.name, ...(await measure(own ?? { dir: dir ?? "" }, size)), size.goal]);
    } finally {
      await own?.drop();
      if (dir !== undefined) await rm(dir, { recursive: true });
    }
  }
  return {
    title: "Recall in a large memory",
    columns: ["interactions", "p50 by words", "p95", "p50 by words and meaning", "p95", "goal"],
    rows,
    note: "random words and vectors; the time of the model is not in it",
  };
}

async function measure(location: DatabaseLocation, { agents, interactions }: Size): Promise<string[]> {
  const database = await openDatabase(location);
  try {
    await migrate(database);
    const owner = "@owner:test" as UserId;
    const conversations = [];
    for (let n = 0; n < agents; n++) {
      const { name, userId } = await addAgent(database, owner);
      const here = newRoom();
      for (const member of [userId, owner]) await setMember(database, here, member, "join");
      conversations.push({ name, userId, owner, here });
    }
    await database.sql`update rooms set kind = 'chat'`;
    const vectors = new InteractionVectors(database);
    await vectors.choose(model);
    await vectors.index(model);
    const each = Math.ceil(interactions / agents);
    for (const { here } of conversations)
      for (let from = 0; from < each; from += 5_000) await say(database, here, Math.min(5_000, each - from));
    const upkeep = new MemoryUpkeep(database);
    while (await upkeep.countWords());
    await database.sql`analyze`;
    const byMode = [];
    for (const isByMeaning of [false, true]) {
      const embedder = { ...model, embed: async (texts: readonly string[]) => texts.map(randomVector) };
      const memory = memoryOf(database, () => (isByMeaning ? embedder : undefined));
      const times: number[] = [];
      for (let n = 0; n < questions; n++) {
        const who = conversations[(n * 37) % conversations.length];
        if (!who) continue;
        const text = Array.from({ length: 8 }, () => `word${Math.floor(wordsKnown * Math.random() ** 3)}`).join(" ");
        const start = performance.now();
        await memory.recall(who, who.here, { text, limit: 10 });
        times.push(performance.now() - start);
      }
      byMode.push(ms(percentile(times, 0.5)), ms(percentile(times, 0.95)));
    }
    return byMode;
  } finally {
    await database.close();
  }
}

/** Memory in which nothing is untrusted. */
export const memoryOf = (
  database: Database,
  embedder: ConstructorParameters<typeof MemoryRecall>[1]["embedder"],
): MemoryRecall =>
  new MemoryRecall(database, {
    embedder,
    ranking: () => "product",
    botUserId: "@clevernet:test" as UserId,
    rights: { findBelow: async () => [] },
  });

/** Adds what was said, of common and of rare words, with random vectors. */
async function say({ sql }: Database, room: string, count: number): Promise<void> {
  await sql`
    with said as (
      insert into interactions (kind, room_id, place, tool, sender, sources, speaker, text, importance)
      select 'observation', ${room}, place_now() + n, 'message', '@owner:test', array[${room}], 'owner', 'owner: ' || (
          select string_agg('word' || floor(${wordsKnown}::int * power(random(), 3))::int, ' ')
          from generate_series(1, ${wordsSaid}::int) w where n > 0), random()
      from generate_series(1, ${count}::int) n
      returning id
    )
    insert into interaction_vectors (interaction_id, model, chunk, vector)
    select id, ${model.model}, 0, (
      select array_agg(random() - 0.5) from generate_series(1, ${model.dimensions}::int) d where id > 0)::real[]::vector
    from said`;
}

const randomVector = (): Float32Array => Float32Array.from({ length: model.dimensions }, () => Math.random() - 0.5);
