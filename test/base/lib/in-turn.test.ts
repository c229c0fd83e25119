import { expect, it } from "vitest";
import { InTurn } from "../../../src/base/lib/in-turn.ts";

const pause = () => new Promise((resolve) => setImmediate(resolve));

it("runs jobs with a key in common one after another, in the order of the calls, and others side by side", async () => {
  const inTurn = new InTurn<string>();
  const seen: string[] = [];
  const job = (name: string) => async () => {
    seen.push(`${name} begins`);
    await pause();
    seen.push(`${name} ends`);
    return name;
  };
  const results = Promise.all([
    inTurn.run(["a"], job("one")),
    inTurn.run(["b"], job("two")),
    inTurn.run(["a", "b"], job("three")),
    inTurn.run(["b"], job("four")),
    inTurn.run([], job("five")),
  ]);
  expect(await results).toEqual(["one", "two", "three", "four", "five"]);
  expect(seen.slice(0, 3)).toEqual(["one begins", "two begins", "five begins"]);
  expect(seen.filter((what) => !what.startsWith("five")).slice(-4)).toEqual([
    "three begins",
    "three ends",
    "four begins",
    "four ends",
  ]);
});

it("goes on after a job that failed, whose caller hears of it", async () => {
  const inTurn = new InTurn<string>();
  const failed = inTurn.run(["a"], () => Promise.reject(new Error("broken")));
  const next = inTurn.run(["a"], async () => "next");
  await expect(failed).rejects.toThrow("broken");
  expect(await next).toBe("next");
});
