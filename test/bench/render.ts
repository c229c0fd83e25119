import { readFile } from "node:fs/promises";
import type { RoomId, UserId } from "../../src/base/lib/ids.ts";
import * as ephemeris from "../../src/base/prompt/ephemeris.ts";
import { type LayoutName, layout } from "../../src/base/prompt/layout.ts";
import { leanEntry } from "../../src/base/prompt/lean.ts";
import type { RoomView, World } from "../../src/base/prompt/types.ts";
import { agentFields } from "../../src/domain/agents/settings.ts";
import { exampleWorld, message, room } from "../base/prompt/worlds.ts";
import { ms, percentile, type Table } from "./table.ts";

/** Rounds, in each of which the calls of a conversation are rendered. */
const warmUps = 5;
const measured = 15;
const calls = 50;

const words = "the quick brown fox doesn't jump over <b>lazy</b> dogs & cats, says the münchner Straße ".repeat(8);
const at = (minute: number) => new Date(Date.parse("2026-01-01T00:00:00Z") + minute * 60_000).toISOString();

/** Short and long messages, about 200 characters each. */
const events = (roomId: string, count: number, from: number) =>
  Array.from({ length: count }, (_, n) =>
    message(
      roomId,
      `$${roomId}${from + n}`,
      at(from + n),
      `@user${n % 5}:example.org`,
      words.slice(0, ((n * 7) % 40) * 10),
    ),
  );

const members = (count: number): RoomView["members"] =>
  Array.from({ length: count }, (_, n) => ({
    userId: `@user${n}:example.org` as UserId,
    isAdmin: n === 0,
    isYou: false,
  }));

/** World that an agent with `rooms` busy rooms sees in one of them, `from` minutes after the beginning. */
async function world(rooms: number, from: number): Promise<World> {
  const guide = await readFile(new URL("../../src/app/shipped/guides/clevernet.md", import.meta.url), "utf8");
  const views = Array.from({ length: rooms }, (_, n) => {
    const id = `!room${n}:example.org`;
    return room(id, `Room ${n}`, {
      members: members(20),
      history: events(id, 60, from),
      newEvents: events(id, 3, from + 60),
      historyLines: 500,
      historyChars: 100_000,
    });
  });
  return {
    ...exampleWorld,
    guides: [{ title: "Guide", text: guide }],
    conversation: "!room0:example.org" as RoomId,
    rooms: views,
    log: {
      entries: views.flatMap(({ history }) =>
        history.slice(0, 60 / rooms + 6).map((event) => leanEntry(event, exampleWorld.agent.userId)),
      ),
      leftOut: new Set(),
    },
    ephemeris: Array.from({ length: 50 }, (_, n) => ephemeris.thought(new Date(at(n)), words.slice(0, (n % 9) * 40))),
  };
}

/** How long it takes to write down what one model call shows, with the context full. */
export async function render(): Promise<Table[]> {
  const rows: string[][] = [];
  for (const name of agentFields.layout.unwrap().options)
    for (const rooms of [1, 10]) {
      // Each call of a conversation shows a little more than the one before.
      const worlds = await Promise.all(Array.from({ length: calls }, (_, n) => world(rooms, n)));
      rows.push([name, String(rooms), ...measure(worlds, name)]);
    }
  return [
    {
      title: "Render: what one model call shows, at most 50,000 characters of it",
      columns: ["layout", "rooms", "characters", "p50", "p95"],
      rows,
      note: "CPU time, mean of 50 calls, whose events were rendered before; each room with 63 events of 200 characters; budget ≤ 2 ms",
    },
  ];
}

/** CPU time, so that what else the machine does is not counted; it is counted coarsely, therefore many together. */
function measure(worlds: readonly World[], name: LayoutName): string[] {
  const rounds: number[] = [];
  let chars = 0;
  for (let round = 0; round < warmUps + measured; round++) {
    const start = process.threadCpuUsage();
    for (const world of worlds) {
      const { system, user } = layout(world, name);
      chars = system.length + user.length;
    }
    const { user, system } = process.threadCpuUsage(start);
    if (round >= warmUps) rounds.push((user + system) / 1000 / worlds.length);
  }
  return [String(chars), ms(percentile(rounds, 0.5)), ms(percentile(rounds, 0.95))];
}
