import { expect, it } from "vitest";
import { Mailbox } from "../../../src/base/lib/mailbox.ts";

const failOnError = (key: string, error: unknown) => {
  throw new Error(`the job of ${key} failed`, { cause: error });
};

it("runs one job at a time of each key, in the order of posting", async () => {
  const mailbox = new Mailbox<string>(failOnError);
  const seen: string[] = [];
  for (const name of ["one", "two", "three"]) {
    mailbox.post("a", async () => {
      seen.push(`${name} begins`);
      await new Promise((resolve) => setImmediate(resolve));
      seen.push(`${name} ends`);
    });
  }
  await mailbox.idle();
  expect(seen).toEqual(["one begins", "one ends", "two begins", "two ends", "three begins", "three ends"]);
});

it("runs keys side by side", async () => {
  const mailbox = new Mailbox<string>(failOnError);
  const { promise, resolve } = Promise.withResolvers<void>();
  mailbox.post("a", () => promise);
  mailbox.post("b", async () => resolve());
  await mailbox.idle();
});

it("goes on after a job that failed, whose key and error are told", async () => {
  const told: unknown[] = [];
  const mailbox = new Mailbox<string>((key, error) => told.push([key, error]));
  const error = new Error("broken");
  const seen: string[] = [];
  mailbox.post("a", () => Promise.reject(error));
  mailbox.post("a", async () => {
    throw error;
  });
  mailbox.post("a", async () => void seen.push("next"));
  await mailbox.idle();
  expect(told).toEqual([
    ["a", error],
    ["a", error],
  ]);
  expect(seen).toEqual(["next"]);
});

it("is idle only when what jobs have posted has run too", async () => {
  const mailbox = new Mailbox<string>(failOnError);
  const seen: string[] = [];
  mailbox.post("a", async () => {
    mailbox.post("a", async () => void seen.push("a"));
    mailbox.post("b", async () => void seen.push("b"));
  });
  await mailbox.idle();
  expect(seen.sort()).toEqual(["a", "b"]);
});

it("is idle at once when nothing was posted", async () => {
  await new Mailbox<string>(failOnError).idle();
});
