import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { withoutPatience } from "../../../src/adapters/database/connection.ts";
import { type DatabaseFailure, failureOf, translate } from "../../../src/adapters/database/failure.ts";
import { nobodyElse } from "../../../src/adapters/database/notify.ts";
import { systemClock } from "../../../src/base/lib/clock.ts";
import { RetryError, UserError } from "../../../src/base/lib/errors.ts";
import type { AgentName, Conversation } from "../../../src/base/lib/ids.ts";
import { silentLog } from "../../../src/base/lib/log.ts";
import { AgentDirectory } from "../../../src/domain/agents/agent.ts";
import { parseAgentSettings } from "../../../src/domain/agents/settings.ts";
import type { Rights } from "../../../src/domain/rights/rights.ts";
import { tool as sendMessage } from "../../../src/edges/tools/send-message.ts";
import { TurnRunner } from "../../../src/engine/turn/runner.ts";
import { onEachDatabase } from "../../support/database.ts";
import { mindOf } from "../../support/mind.ts";
import { newKey, newRoom, newUser, rightsOf, setMember, wake } from "../../support/rows.ts";
import { type ModelRequest, ScriptedModel, say } from "../../support/scripted-model.ts";
import { refusing } from "../../support/unwell-database.ts";

describe("an error of the database", () => {
  const of = (code: string | undefined) => Object.assign(new Error("why"), { code });
  const known: readonly [DatabaseFailure, readonly string[]][] = [
    ["lost", ["CONNECTION_CLOSED", "CONNECT_TIMEOUT", "ECONNREFUSED", "EAI_AGAIN", "57P01", "57P03"]],
    ["collision", ["40001", "40P01"]],
    ["unavailable", ["08006", "53100", "53200", "53300", "57P04", "58030", "58P01", "25006"]],
    ["input", ["22001", "22003", "22008", "22P05", "54000", "54001"]],
    ["bug", ["23505", "42P01", "XX000", "P0001", "57014", ""]],
  ];
  it.each(known.flatMap(([failure, codes]) => codes.map((code) => [failure, code] as const)))(
    "%s: %s",
    (failure, code) => {
      expect(failureOf(of(code))).toBe(failure);
      const error = translate(of(code));
      if (failure === "bug") expect(error).toMatchObject({ code, message: "why" });
      else expect(error).toMatchObject({ name: failure === "input" ? "UserError" : "RetryError", cause: { code } });
    },
  );
});

onEachDatabase((database) => {
  it("a statement is tried again while the database refuses it, and what was refused is told for a while", async () => {
    const { sql, run, isWell } = database();
    await sql.unsafe(`create function refuse() returns text language plpgsql as
      $$ begin raise exception 'no space' using errcode = 'disk_full'; end $$`);
    expect(await isWell()).toBe(true);
    let tries = 0;
    const written = run((now) => (++tries < 4 ? now`select refuse()` : now`select 'done' as done`));
    await expect.poll(isWell, { interval: 10 }).toBe(false);
    expect(await written).toEqual([{ done: "done" }]);
    expect(tries).toBe(4);
    expect(await isWell()).toBe(true);
    const error = await withoutPatience(database())
      .run((now) => now`select refuse()`)
      .catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(RetryError);
    expect(String(error)).toContain("no space");
    expect(await isWell()).toBe(false);
  });

  it.each([
    ["select '3000000000'::integer", "3000000000"],
    ["select '+275760-09-13'::timestamptz", "275760"],
    ["select repeat('x', 2000000000)", "requested length too large"],
  ])("what it cannot take is the caller's mistake: %s", async (statement, why) => {
    const error = await database()
      .run((sql) => sql.unsafe(statement))
      .catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(UserError);
    expect(String(error)).toMatch(why);
  });

  describe("a turn", () => {
    let model: ScriptedModel;
    let rights: Rights;
    let conversation: Conversation;
    beforeEach(async () => {
      model = await new ScriptedModel().start();
      const [name, owner, person] = [newKey().replace(" ", "") as AgentName, newUser(), newUser()];
      const directory = new AgentDirectory(database(), systemClock, silentLog);
      await directory.seed({ name, owner, persona: undefined, settings: parseAgentSettings({}, "test") }, "test");
      rights = await rightsOf(database(), { test: "operate" });
      conversation = { agent: name, roomId: newRoom() };
      const agent = await directory.find(name);
      for (const userId of [person, agent?.userId ?? person])
        await setMember(database(), conversation.roomId, userId, "join");
      await wake(database(), conversation, { requester: person });
    });
    afterEach(() => model.stop());
    const answer = (request: ModelRequest) => say(request, conversation.roomId, "done", { final: true });
    const said = async () => {
      const rows = await database().sql<{ body: string }[]>`
        select content->>'body' as body from outbox where room_id = ${conversation.roomId} order by id`;
      return rows.map(({ body }) => body);
    };
    const states = async () => {
      const rows = await database().sql<{ state: string }[]>`
        select state from turns where agent = ${conversation.agent} and room_id = ${conversation.roomId}`;
      return rows.map(({ state }) => state);
    };

    it("whose disk is full when the model has answered is kept until there is room, and the model is paid once", async () => {
      await database()
        .sql.unsafe(`
        create function full_disk() returns trigger language plpgsql as
          $$ begin raise exception 'could not extend file' using errcode = 'disk_full'; end $$;
        create trigger full_disk before insert on steps execute function full_disk()`)
        .simple();
      model.onEvery(answer);
      const mind = mindOf(database(), { modelUrl: model.url, rights, tools: [sendMessage] });
      const running = new TurnRunner(mind, nobodyElse, () => {}).run(conversation);
      await expect.poll(() => model.requests.length).toBe(1);
      await systemClock.sleep(500);
      expect(await states()).toEqual(["running"]);
      await database().sql.unsafe("drop trigger full_disk on steps");
      expect(await running).toBe(true);
      expect(await states()).toEqual(["done"]);
      expect(await said()).toEqual(["done"]);
      expect(model.requests).toHaveLength(1);
    });

    it("stays open wherever the database refuses it, and is answered once when it does not", async () => {
      model.onEvery(answer);
      for (let at = 1; ; at++) {
        if (at > 1) await wake(database(), conversation, { requester: newUser() });
        const unwell = refusing(database(), at);
        const mind = mindOf(unwell.database, { modelUrl: model.url, rights, tools: [sendMessage] });
        const runner = new TurnRunner(mind, nobodyElse, () => {});
        const before = model.requests.length;
        const first = await runner.run(conversation).catch((error: unknown) => error);
        if (!unwell.refused()) break;
        if (first !== true) {
          expect([false, "RetryError"]).toContain(first instanceof Error ? first.name : first);
          expect(await runner.run(conversation)).toBe(true);
        }
        expect(model.requests.length - before, `statement ${at}`).toBe(1);
        expect(await said(), `statement ${at}`).toEqual(Array.from({ length: at }, () => "done"));
        expect(new Set(await states())).toEqual(new Set(["done"]));
      }
    });
  });
});
