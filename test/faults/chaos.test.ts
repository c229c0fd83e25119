import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { answerTo } from "../support/answers.ts";
import { answerOwn, backUp, dice, type Gate, goWrong, insist, keepUp } from "../support/chaos.ts";
import { count } from "../support/faults.ts";
import { Stage } from "../support/stage.ts";
import type { TestUser } from "../support/user.ts";

interface Place {
  readonly room: string;
  readonly people: readonly TestUser[];
  readonly agent: string;
  readonly asked: string[];
}

/** More of them by CHAOS_SEEDS: `1-30`. Every other one brings a backup back in its middle. */
const [from = 1, to = from + 2] = (process.env.CHAOS_SEEDS ?? "1-3").split("-").map(Number);
const seeds = Array.from({ length: to - from + 1 }, (_, index) => from + index);

describe.each([
  ["embedded", 1],
  ["postgres", 2],
] as const)("on the %s database", (database, processes) => {
  it.each(seeds)(
    "whatever goes wrong, everything is answered once, and nothing is left over (seed %i)",
    async (seed) => {
      const stage = await Stage.set({ database, processes, agents: { helper: {}, scribe: {} } });
      try {
        stage.model.onEvery(answerOwn(dice(seed)));
        const [ann, ben] = [await stage.user("ann"), await stage.user("ben")];
        for (const bridge of stage.bridges) await bridge.start();
        const places: Place[] = [
          { room: await stage.room(ann, [ben], ["helper"]), people: [ann, ben], agent: "helper", asked: [] },
          { room: await stage.room(ben, [ann], ["scribe"]), people: [ben], agent: "scribe", asked: [] },
          { room: await stage.directRoom(ann), people: [ann], agent: "helper", asked: [] },
        ];
        const ask = async ({ agent, room, asked }: Place, person: TestUser) => {
          const body = `${asked.length + 1} for ${stage.agentId(agent)}`;
          asked.push(body);
          await insist(person, room, { body, "m.mentions": { user_ids: [stage.agentId(agent)] } });
          return answerTo(body);
        };
        const ended = new AbortController();
        const talk = async (place: Place, person: TestUser) => {
          while (!ended.signal.aborted) {
            await ask(place, person);
            await sleep(500 + Math.random() * 2_000);
          }
        };
        const talking = places.flatMap((place) => place.people.map((person) => talk(place, person)));
        const gate: Gate = { isOpen: true };
        const running = stage.bridges.map((bridge) => keepUp(bridge, gate, ended.signal));
        const roll = dice(seed);
        const isRestored = seed % 2 === 0;
        // The time that a restore undoes.
        const undone = { from: new Date(0), to: new Date(0) };
        const all = async () => {
          if (!isRestored) return goWrong(stage, roll, 45_000);
          await goWrong(stage, roll, 10_000);
          const bringBack = await backUp(stage, gate);
          undone.from = new Date();
          await goWrong(stage, roll, 15_000);
          await bringBack();
          undone.to = new Date();
          await goWrong(stage, roll, 15_000);
        };
        await all().finally(() => ended.abort());
        await Promise.all([...talking, ...running]);
        for (const place of places) {
          for (const person of place.people) {
            const answer = await ask(place, person);
            await person.waitForMessage(place.room, ({ body }) => body === answer, { within: 150_000 });
          }
        }

        await stage.check({ isRestored });
        const wasRestored =
          "t.error is not distinct from 'it was answered before an older copy of the database came back'";
        // A message that was found late is not answered where a newer one was; nor is one that came again after a restore, or
        // one of several of which a part was answered before it.
        const late = await stage.query<{ answer: string }>(
          `select 'answer to ' || (content->>'body') as answer from events
           where (source = 'sweep' or sent_at between '${undone.from.toISOString()}' and '${undone.to.toISOString()}') and content->>'body' like '% for %'
           union select 'answer to ' || (e.content->>'body') from events e join wakes w using (event_id)
             join turns t on t.id = w.turn_id and ${wasRestored}
           union select 'answer to ' || (e.content->>'body') from events e join events u using (room_id)
             join events a on a.room_id = e.room_id and a.content->>'org.clevernet.answers_until' = u.event_id
             where e.routed_at > '${undone.to.toISOString()}' and u.position >= e.position
               and not exists (select 1 from outbox o where o.key = a.content->>'org.clevernet.key')`,
        );
        for (const { room, people, asked } of places) {
          const said = ((await people[0]?.messages(room)) ?? []).map(({ body }) => body);
          const answers = said.filter((body) => body.startsWith("answer to "));
          // A homeserver that has forgotten under which id it got a question takes it twice.
          const timesSaid = (body: string) => said.filter((one) => one === body).length;
          const tooMany = asked.filter((body) => timesSaid(answerTo(body)) > timesSaid(body));
          expect(tooMany).toEqual([]);
          const missing = asked.map(answerTo).filter((answer) => !answers.includes(answer));
          expect(late.map(({ answer }) => answer)).toEqual(expect.arrayContaining(missing));
        }
        expect(await count(stage, `turns t where state <> 'done' and not ${wasRestored}`)).toBe(0);
        expect(await count(stage, "steps where state <> 'done'")).toBe(0);
        expect(await count(stage, "reservations")).toBe(0);
        const paid = "exists (select 1 from usage u where u.turn_id = s.turn_id and u.n = s.n)";
        expect(await count(stage, `steps s where name not like 'call %' and not ${paid}`)).toBe(0);
      } finally {
        await stage.strike();
      }
    },
  );
});
