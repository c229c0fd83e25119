import { describe, expect, test } from "vitest";
import { layout as layoutAs } from "../../../src/base/prompt/layout.ts";
import type { World } from "../../../src/base/prompt/types.ts";
import { busyWorld, exampleWorld } from "./worlds.ts";

const layout = (world: World) => layoutAs(world, "seed");

const golden = (name: string) => `golden/${name}.txt`;
const complete = (world: World) => {
  const { system, user } = layout(world);
  return `System message:\n${system}\n\nUser message:\n${user}\n`;
};

/** The lines of the first element that begins with `start`, without their common indentation. */
const cutOut = (text: string, start: string, end: string): string => {
  const lines = text.split("\n");
  const first = lines.findIndex((line) => line.trimStart().startsWith(start));
  const indent = (lines[first] ?? "").search(/\S/);
  const last = lines.findIndex((line, index) => index > first && line === `${" ".repeat(indent)}${end}`);
  return `${lines
    .slice(first, last + 1)
    .map((line) => line.slice(indent))
    .join("\n")}\n`;
};

/** To accept a change on purpose: `vitest run test/context/chat-interface.test.ts -u`, then read the difference. */
describe("layout seed, element for element", () => {
  test("the system message is prompt, persona window and guide", async () => {
    await expect(`${layout(exampleWorld).system}\n`).toMatchFileSnapshot(golden("example-system"));
  });

  test("the user message is the chat interface", async () => {
    await expect(`${layout(exampleWorld).user}\n`).toMatchFileSnapshot(golden("example-user"));
  });

  test("the ephemeris is a room of its own", async () => {
    const room = cutOut(layout(exampleWorld).user, '<room systemId="matrix.org" roomId="ephemeris"', "</room>");
    await expect(room).toMatchFileSnapshot(golden("example-ephemeris"));
  });

  test("both messages together are everything the agent sees", async () => {
    await expect(complete(exampleWorld)).toMatchFileSnapshot(golden("example-complete"));
  });

  test("threads, replies, walls, direct rooms, a running turn and the text after everything have their places", async () => {
    await expect(complete(busyWorld)).toMatchFileSnapshot(golden("busy-complete"));
  });
});
