import { expect, it, onTestFinished } from "vitest";
import { systemClock } from "../../../src/base/lib/clock.ts";
import { Rounds } from "../../../src/base/lib/rounds.ts";

const long = 600_000;

/** Rounds that are counted; each is `held` until it is let go. */
function begin() {
  const rounds = new Rounds(systemClock);
  const held: (() => void)[] = [];
  rounds.start(async () => {
    await new Promise<void>((goOn) => held.push(goOn));
    return long;
  });
  onTestFinished(async () => {
    const stopped = rounds.stop();
    for (const goOn of held) goOn();
    await stopped;
  });
  const turn = (count: number) => expect.poll(() => held.length).toBe(count);
  return { rounds, turn, letGo: () => held.at(-1)?.() };
}

it("rounds follow each other at once where there is more to do", async () => {
  const rounds = new Rounds(systemClock);
  let count = 0;
  rounds.start(async () => (++count < 5 ? 0 : long));
  await expect.poll(() => count).toBe(5);
  await rounds.stop();
});

it("a rest ends when it is nudged", async () => {
  const { rounds, turn, letGo } = begin();
  await turn(1);
  letGo();
  await systemClock.sleep(20);
  rounds.nudge();
  await turn(2);
});

it("a nudge in the middle of a round begins another behind it", async () => {
  const { rounds, turn, letGo } = begin();
  await turn(1);
  rounds.nudge();
  letGo();
  await turn(2);
});

it("no round begins once they are stopped", async () => {
  const { rounds, turn, letGo } = begin();
  await turn(1);
  const stopped = rounds.stop();
  letGo();
  await stopped;
  await turn(1);
});
