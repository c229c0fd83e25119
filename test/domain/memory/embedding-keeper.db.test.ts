import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type Embedder, EmbeddingError } from "../../../src/adapters/embedding/embedder.ts";
import { systemClock } from "../../../src/base/lib/clock.ts";
import { silentLog } from "../../../src/base/lib/log.ts";
import { EmbeddingKeeper } from "../../../src/domain/memory/embedding-keeper.ts";
import { InteractionVectors } from "../../../src/domain/tables/interaction-vectors.ts";
import { KnowledgeVectors } from "../../../src/domain/tables/knowledge-vectors.ts";
import { onEachDatabase } from "../../support/database.ts";
import { addMemories } from "../../support/memories.ts";

type Embed = Embedder["embed"];

/** A vector that tells its text's length, and nothing else. */
const vectorOf = (text: string): Float32Array => Float32Array.of(Math.cos(text.length), Math.sin(text.length), 0);
const usual: Embed = async (texts) => texts.map(vectorOf);

onEachDatabase((database, kind) => {
  let keepers: EmbeddingKeeper[];
  /** Texts that were embedded, in their order. */
  let embedded: string[];
  let vectors: InteractionVectors;
  let lost: string[];

  beforeEach(async () => {
    [keepers, embedded, lost] = [[], [], []];
    vectors = new InteractionVectors(database());
    await database().sql`delete from interactions`;
    await database().sql`delete from embedding_models`;
  });
  afterEach(async () => {
    for (const keeper of keepers) await keeper.stop();
  });

  const log = Object.assign(Object.create(silentLog), { warn: (words: string) => void lost.push(words) });
  const open = ({ model = "one", embed = usual, holds = (): boolean => true } = {}): EmbeddingKeeper => {
    const present: Embedder = {
      model,
      dimensions: 3,
      embed(texts) {
        embedded.push(...texts);
        return embed(texts);
      },
    };
    // Pauses are short, and nothing waits for more to come.
    const clock = {
      ...systemClock,
      sleep: (ms: number, signal?: AbortSignal) => systemClock.sleep(Math.min(ms, 20), signal),
    };
    const keeper = new EmbeddingKeeper({
      embeddings: { present },
      vectors,
      knowledge: new KnowledgeVectors(database()),
      leases: { holds },
      clock,
      log,
    });
    keepers.push(keeper);
    keeper.start();
    return keeper;
  };
  const add = (...texts: string[]) => addMemories(database(), texts);
  const stored = async () =>
    (
      await database().sql<{ key: string }[]>`
        select v.interaction_id || ' ' || v.model || ' ' || v.chunk as key from interaction_vectors v
        order by v.interaction_id, v.model, v.chunk`
    ).map(({ key }) => key);
  const whole = async (model: string) => {
    await expect.poll(() => vectors.waiting()).toBe(0);
    await expect
      .poll(async () => (await database().sql`select 1 from embedding_models where model <> ${model}`).length)
      .toBe(0);
    await expect
      .poll(
        async () => (await database().sql`select 1 from embedding_models where model = ${model} and below = 0`).length,
      )
      .toBe(1);
  };
  const indexes = async () =>
    (
      await database().sql<{ definition: string; isValid: boolean }[]>`
        select pg_get_indexdef(indexrelid) as definition, indisvalid as "isValid" from pg_index
        where indrelid = 'interaction_vectors'::regclass and not indisprimary`
    ).map(({ definition, isValid }) => `${/model = '((?:[^']|'')*)'/.exec(definition)?.[1]} ${isValid}`);

  describe("a memory", () => {
    it("gets a vector for each chunk of its text, the newest memory first", async () => {
      const [first, second] = await add("an old text", "x".repeat(600));
      open();
      await whole("one");
      expect(await stored()).toEqual([`${first} one 0`, `${second} one 0`, `${second} one 1`]);
      expect(embedded).toEqual(["x".repeat(512), "x".repeat(138), "an old text"]);
    });

    it("that is stored later gets one, too", async () => {
      const keeper = open();
      await whole("one");
      const [id] = await add("new");
      keeper.nudge();
      await expect.poll(stored).toEqual([`${id} one 0`]);
    });

    it("that is taken back while it is embedded gets none", async () => {
      const [id] = await add("a secret");
      open({
        async embed(texts) {
          await database().sql`delete from interactions where id = ${id ?? 0}`;
          return usual(texts);
        },
      });
      await whole("one");
      expect(await stored()).toEqual([]);
    });

    it("that changes while it is embedded gets those of what it says now", async () => {
      const [id] = await add("before");
      let changes = 1;
      open({
        async embed(texts) {
          if (changes-- > 0) await database().sql`update interactions set text = 'afterwards' where id = ${id ?? 0}`;
          return usual(texts);
        },
      });
      await whole("one");
      expect(embedded).toEqual(["before", "afterwards"]);
      const [row] = await database().sql<{ vector: string }[]>`select vector::text from interaction_vectors`;
      expect(JSON.parse(row?.vector ?? "[]")[0]).toBeCloseTo(Math.cos("afterwards".length), 5);
    });

    it("that changes later loses its vectors at once", async () => {
      const [id] = await add("x".repeat(600));
      open();
      await whole("one");
      await database().sql`update interactions set text = 'short' where id = ${id ?? 0}`;
      expect(await stored()).toEqual([]);
    });

    it("that the model refuses has no vectors, and keeps nobody waiting", async () => {
      const [first, second, third] = await add("good", "bad", "fine");
      open({
        async embed(texts) {
          if (texts.includes("bad")) throw new EmbeddingError("too long", "refused");
          return usual(texts);
        },
      });
      await whole("one");
      expect(await stored()).toEqual([`${first} one 0`, `${third} one 0`]);
      expect(new Set(lost)).toEqual(new Set([`memory ${second} has no vectors: too long`]));
    });

    it("gets its vectors later where there are none now", async () => {
      const [id] = await add("text");
      let failures = 2;
      open({
        async embed(texts) {
          if (failures-- > 0) throw new EmbeddingError("away", "unavailable");
          return usual(texts);
        },
      });
      await whole("one");
      expect(await stored()).toEqual([`${id} one 0`]);
      expect(lost).toEqual(Array(2).fill("memories are embedded later: away"));
    });
  });

  describe("with another model", () => {
    it("all is embedded again, and the vectors before go when all the new ones are there", async () => {
      const ids = await add(...Array.from({ length: 40 }, (_, n) => `text ${n}`));
      const first = open();
      await whole("one");
      await first.stop();
      const held = Promise.withResolvers<void>();
      let batches = 0;
      open({
        model: "two",
        async embed(texts) {
          if (++batches === 2) await held.promise;
          return usual(texts);
        },
      });
      await expect.poll(async () => (await stored()).length).toBe(40 + 16);
      expect(await indexes()).toEqual(expect.arrayContaining(["one true", "two true"]));
      held.resolve();
      await whole("two");
      expect(await stored()).toEqual(ids.map((id) => `${id} two 0`));
      expect(await indexes()).toEqual(["two true"]);
    });

    it("and back, only what is missing is embedded", async () => {
      await add("text");
      await open().stop();
      await vectors.choose({ model: "one", dimensions: 3 });
      await vectors.store(
        "one",
        (await vectors.next(9)).map((one) => ({ ...one, vectors: [vectorOf(one.text)] })),
      );
      await vectors.choose({ model: "two", dimensions: 3 });
      const [later] = await add("later");
      embedded = [];
      open();
      await whole("one");
      expect(embedded).toEqual(["later"]);
      expect(await stored()).toContain(`${later} one 0`);
    });

    it("a process that died in the middle is followed by one that goes on", async () => {
      await add(...Array.from({ length: 40 }, (_, n) => `text ${n}`));
      const never = new Promise<never>(() => {});
      let batches = 0;
      const dying = open({ embed: (texts) => (++batches === 2 ? never : usual(texts)) });
      await expect.poll(() => embedded.length).toBe(32);
      keepers.splice(keepers.indexOf(dying), 1);
      embedded = [];
      open();
      await whole("one");
      expect(embedded).toHaveLength(24);
    });
  });

  describe("two processes", () => {
    it("embed nothing twice: one of them has the lease", async () => {
      await add(...Array.from({ length: 40 }, (_, n) => `text ${n}`));
      open();
      open({ holds: () => false });
      await whole("one");
      expect(embedded.toSorted()).toEqual(Array.from({ length: 40 }, (_, n) => `text ${n}`).toSorted());
    });

    it("that believe both to have it store each vector once", async () => {
      const ids = await add(...Array.from({ length: 40 }, (_, n) => `text ${n}`));
      open();
      open();
      await whole("one");
      expect(await stored()).toEqual(ids.map((id) => `${id} one 0`));
    });
  });

  describe("the index", () => {
    it("is of one model, whatever that is called", async () => {
      open({ model: "it's \\ a model" });
      await whole("it's \\ a model");
      expect(await indexes()).toContain("it''s \\ a model true");
    });

    it.runIf(kind === "postgres")("that was left unfinished is made anew", async () => {
      const model = { model: "unfinished", dimensions: 3 };
      await vectors.index(model);
      await database().sql`update pg_index set indisvalid = false where indexrelid in
        (select indexrelid from pg_index where pg_get_indexdef(indexrelid) like '%unfinished%')`;
      await vectors.index(model);
      expect(await indexes()).toContain("unfinished true");
    });

    it("is none where vectors are longer than it takes", async () => {
      const before = (await indexes()).length;
      await vectors.index({ model: "long", dimensions: 3_072 });
      expect(await indexes()).toHaveLength(before);
    });
  });

  it("the table takes vectors once the extension is there that was missing", async () => {
    await database().sql`delete from interaction_vectors`;
    await database().sql`alter table interaction_vectors drop column vector`;
    expect(await vectors.prepare()).toBeUndefined();
    const [id] = await add("text");
    open();
    await whole("one");
    expect(await stored()).toEqual([`${id} one 0`]);
  });
});
