import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Database, openDatabase } from "../../src/adapters/database/connection.ts";
import { migrate } from "../../src/adapters/database/migrate.ts";
import { systemClock } from "../../src/base/lib/clock.ts";
import type { RoomId, UserId } from "../../src/base/lib/ids.ts";
import { silentLog } from "../../src/base/lib/log.ts";
import { EmbeddingKeeper } from "../../src/domain/memory/embedding-keeper.ts";
import { Embeddings } from "../../src/domain/memory/embeddings.ts";
import type { MemoryRecall } from "../../src/domain/memory/recall.ts";
import { InteractionVectors } from "../../src/domain/tables/interaction-vectors.ts";
import { KnowledgeVectors } from "../../src/domain/tables/knowledge-vectors.ts";
import { MemoryUpkeep } from "../../src/domain/tables/memory-upkeep.ts";
import { eventually } from "../support/poll.ts";
import { addAgent, newRoom, setMember } from "../support/rows.ts";
import { supersededFacts } from "./recall-facts.ts";
import { ownSet, type RecallSet, readSets } from "./recall-set.ts";
import { memoryOf, recallSpeed } from "./recall-speed.ts";
import { ms, percentile, type Table } from "./table.ts";
import { residentMb } from "./usage.ts";

const foundMost = 10;
const patienceMs = 60_000;
/** Importance of all that was said. */
const importance = 0.3;

interface Score {
  readonly questions: number;
  readonly at1: number;
  readonly at5: number;
  readonly at10: number;
  readonly ndcg: number;
  readonly times: readonly number[];
}

/**
 * How well and how fast memory is recalled. With the folder of a model in EMBEDDINGS_MODEL_DIR by meaning, too; with
 * LoCoMo or LongMemEval as JSON in RECALL_DATA_DIR also on that. RECALL_LARGE=1 measures large memories: many minutes.
 */
export async function recall(postgresUrl: string | undefined): Promise<Table[]> {
  const rows: string[][] = [];
  const modelDir = process.env.EMBEDDINGS_MODEL_DIR;
  const data = process.env.RECALL_DATA_DIR;
  const files = data === undefined ? [] : (await readdir(data)).filter((name) => name.endsWith(".json"));
  const groups = [[ownSet()], ...files.map((name) => readSets(join(data ?? "", name)))];
  let memory = "";
  for (const sets of groups) {
    const byMode = new Map<string, Score[]>();
    for (const set of sets) {
      const measured = await measure(set, modelDir);
      for (const [mode, score] of measured.scores) byMode.set(mode, [...(byMode.get(mode) ?? []), score]);
      memory = measured.memory || memory;
    }
    for (const [mode, scores] of byMode) rows.push([`${sets[0]?.name}, ${mode}`, ...cells(scores)]);
  }
  return [
    {
      title: "Recall: how often the right memory is among the first",
      columns: ["", "questions", "recall@1", "@5", "@10", "NDCG@10", "p50", "p95"],
      rows,
      note: modelDir === undefined ? "by words alone: EMBEDDINGS_MODEL_DIR names no model" : memory,
    },
    await supersededFacts(),
    ...(process.env.RECALL_LARGE ? [await recallSpeed(postgresUrl)] : []),
  ];
}

async function measure(set: RecallSet, modelDir: string | undefined) {
  const dir = await mkdtemp(join(tmpdir(), "clevernet-recall-"));
  const database = await openDatabase({ dir });
  const scores = new Map<string, Score>();
  let memory = "";
  try {
    await migrate(database);
    const { who, ids } = await fill(database, set);
    scores.set("by words", await ask({ database, who, ids, set }));
    await database.sql`update interactions set importance = random()`;
    scores.set("by words, importance at random (goal: at most 0.5 less)", await ask({ database, who, ids, set }));
    await database.sql`update interactions set importance = ${importance}`;
    if (modelDir !== undefined) {
      const before = await residentMb(process.pid);
      const settings = { kind: "local", dir: modelDir, downloadFrom: undefined } as const;
      const embeddings = new Embeddings({ settings, instance: "bench", clock: systemClock, log: silentLog });
      embeddings.start();
      await eventually(() => embeddings.present, { within: 60_000, what: "the model" });
      const vectors = new InteractionVectors(database);
      const leases = { holds: () => true };
      const keeper = new EmbeddingKeeper({
        embeddings,
        vectors,
        knowledge: new KnowledgeVectors(database),
        leases,
        clock: systemClock,
        log: silentLog,
      });
      keeper.start();
      await eventually(async () => (await vectors.waiting()) === 0, { within: 3_600_000, what: "all vectors" });
      memory = `memory of the process: ${before.toFixed(0)} MB without the model, ${((await residentMb(process.pid)) - before).toFixed(0)} MB more with it (goal ≤ 250)`;
      scores.set("by words and meaning", await ask({ database, who, ids, set, embeddings }));
      await keeper.stop();
      await embeddings.stop();
    }
  } finally {
    await database.close();
    await rm(dir, { recursive: true });
  }
  return { scores, memory };
}

/** One agent in one room with everybody, who have said all of this, a minute after the other. */
async function fill(database: Database, { said }: RecallSet) {
  const owner = "@owner:test" as UserId;
  const agent = await addAgent(database, owner);
  const here = newRoom();
  await setMember(database, here, agent.userId, "join");
  const names = [...new Set(said.map(({ by }) => by))];
  const userOf = (name: string) => `@${name.toLowerCase().replace(/\W/g, "_")}:test` as UserId;
  for (const name of names) {
    await setMember(database, here, userOf(name), "join");
    await database.sql`update members set display_name = ${name} where room_id = ${here} and user_id = ${userOf(name)}`;
  }
  await database.sql`update rooms set kind = 'chat' where room_id = ${here}`;
  const rows = said.map(({ by, text }, n) => ({ n, by, sender: userOf(by), text }));
  const ids: number[] = [];
  for (let from = 0; from < rows.length; from += 1_000) {
    const added = await database.sql<{ id: number }[]>`
      with added as (
        insert into interactions (kind, room_id, tool, sender, at, sources, speaker, text, importance)
        select 'observation', ${here}, 'message', r.sender, now() - make_interval(mins => ${rows.length}::int - r.n),
          array[${here}], r.by, r.by || ': ' || r.text, ${importance}::float8
        from jsonb_to_recordset(${database.sql.json(rows.slice(from, from + 1_000))}) as r(n int, by text, sender text, text text)
        order by r.n returning id
      ), queued as (insert into interactions_to_embed select id from added)
      select id from added order by id`;
    ids.push(...added.map(({ id }) => id));
  }
  const upkeep = new MemoryUpkeep(database);
  while (await upkeep.countWords());
  await database.sql`analyze`;
  return { who: { name: agent.name, userId: agent.userId, owner, here }, ids };
}

interface Asking {
  readonly database: Database;
  readonly who: Parameters<MemoryRecall["recall"]>[0] & { readonly here: RoomId };
  /** Ids of what was said, in its order. */
  readonly ids: readonly number[];
  readonly set: RecallSet;
  readonly embeddings?: Embeddings;
}

async function ask({ database, who, ids, set, embeddings }: Asking): Promise<Score> {
  const memory = memoryOf(database, () => embeddings?.forQuestions);
  const hits = { at1: 0, at5: 0, at10: 0, ndcg: 0 };
  const times: number[] = [];
  for (const { question, answers } of set.asked) {
    const start = performance.now();
    const { found } = await memory.recall(who, who.here, { text: question, limit: foundMost, patienceMs });
    times.push(performance.now() - start);
    const right = new Set(answers.map((place) => ids[place]));
    const ranks = found.flatMap(({ id }, rank) => (right.has(id) ? [rank] : []));
    const best = ranks[0] ?? foundMost;
    hits.at1 += Number(best < 1);
    hits.at5 += Number(best < 5);
    hits.at10 += Number(best < 10);
    const gain = (places: readonly number[]) => places.reduce((sum, place) => sum + 1 / Math.log2(place + 2), 0);
    hits.ndcg += gain(ranks) / gain(Array.from({ length: Math.min(answers.length, foundMost) }, (_, n) => n));
  }
  return { questions: set.asked.length, ...hits, times };
}

function cells(scores: readonly Score[]): string[] {
  const questions = scores.reduce((sum, score) => sum + score.questions, 0);
  const share = (key: "at1" | "at5" | "at10" | "ndcg") =>
    ((100 * scores.reduce((sum, score) => sum + score[key], 0)) / questions).toFixed(1);
  const times = scores.flatMap((score) => score.times);
  const shares = (["at1", "at5", "at10", "ndcg"] as const).map(share);
  return [String(questions), ...shares, ms(percentile(times, 0.5)), ms(percentile(times, 0.95))];
}
