import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { answerEach, answerTo } from "../support/answers.ts";
import { bordersOfAnswer, bordersOfDevice, bordersOfNewDevice } from "../support/secret-borders.ts";
import { addDevice, createSecretUser } from "../support/secret-user.ts";
import { Stage } from "../support/stage.ts";

const minute = 60_000;

describe.each(["embedded", "postgres"] as const)("in an encrypted room, on the %s database", (database) => {
  it.each([1, 2, 3])(
    "a bridge that is killed at every border answers each message once (slow: 16 deaths; round %i)",
    async () => {
      const stage = await Stage.set({ database });
      const people = [];
      try {
        stage.model.onEvery(answerEach);
        const ann = await createSecretUser(stage.homeserver, "ann");
        people.push(ann);
        for (const [, hold] of bordersOfDevice) {
          const fault = hold(stage);
          const starting = stage.bridge.start();
          await fault.reached(minute);
          await stage.bridge.kill();
          await starting.catch(() => {});
          fault.lift();
        }
        await stage.bridge.start();
        const room = await stage.directRoom(ann);
        const asked: string[] = [];
        const dieAt = async (moment: string, fault: ReturnType<(typeof bordersOfDevice)[number][1]>) => {
          const text = `asked ${moment}`;
          asked.push(text);
          await ann.say(room, text);
          await fault.reached(minute);
          await stage.bridge.kill();
          fault.lift();
          await stage.bridge.start();
          await ann.waitForMessage(room, ({ body }) => body === answerTo(text), { within: minute });
        };
        for (const [moment, hold] of bordersOfAnswer(() => room)) {
          await ann.forgetSession(room);
          // The bridge begins a new session after each start: then it gives keys.
          await stage.bridge.kill();
          await stage.bridge.start();
          await dieAt(moment, hold(stage));
        }
        for (const [moment, hold] of bordersOfNewDevice) {
          people.push(await addDevice(stage.homeserver, ann, "password-ann"));
          await ann.forgetSession(room);
          await dieAt(moment, hold(stage));
        }
        await stage.check();
        const heard = ann.heard(room).filter(({ sender }) => sender === stage.agentId());
        expect(heard.map(({ body }) => body)).toEqual(asked.map(answerTo));
      } finally {
        for (const user of people) user.stop();
        await stage.strike();
      }
    },
    10 * minute,
  );
});

it(
  "two processes that are killed in turn answer 100 messages in 10 encrypted rooms once (slow: deaths and takeovers)",
  async () => {
    const stage = await Stage.set({
      database: "postgres",
      processes: 2,
      agents: { helper: { maxConcurrentTurns: 32 } },
    });
    stage.model.onEvery(answerEach);
    const ann = await createSecretUser(stage.homeserver, "ann");
    try {
      for (const bridge of stage.bridges) await bridge.start();
      const rooms: string[] = [];
      while (rooms.length < 10) rooms.push(await stage.directRoom(ann));
      const texts = Array.from({ length: 10 }, (_, n) => `message ${n + 1}`);
      const talking = Promise.all(
        rooms.map(async (room) => {
          for (const text of texts) {
            await sleep(Math.random() * 4_000);
            // Each begins a session: its key may be lost by whoever dies.
            await ann.forgetSession(room);
            await ann.say(room, text);
          }
        }),
      );
      for (const bridge of [...stage.bridges, ...stage.bridges]) {
        await sleep(1_000 + Math.random() * 3_000);
        await bridge.kill();
        await sleep(2_000);
        await bridge.start();
      }
      await talking;
      for (const room of rooms)
        for (const text of texts)
          await ann.waitForMessage(room, ({ body }) => body === answerTo(text), { within: 2 * minute });
      await stage.check();
      for (const room of rooms) {
        const said = ann.heard(room).filter(({ sender }) => sender === stage.agentId());
        expect(said.map(({ body }) => body)).toEqual(texts.map(answerTo));
      }
    } finally {
      ann.stop();
      await stage.strike();
    }
  },
  10 * minute,
);
