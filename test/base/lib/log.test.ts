import { expect, it } from "vitest";
import { about, createLog } from "../../../src/base/lib/log.ts";

it("says in every line what is being worked on, also after waiting, and in nobody else's", async () => {
  const lines: Record<string, unknown>[] = [];
  const log = createLog("info", { write: (line) => void lines.push(JSON.parse(line)) });
  const work = (agent: string, turn: number) =>
    about({ agent, turn }, async () => {
      await Promise.resolve();
      about({ room: `!${agent}` }, () => log.info(agent));
    });
  await Promise.all([work("a", 1), work("b", 2)]);
  log.info("c");
  expect(lines.map(({ level: _, time: __, ...line }) => line)).toEqual([
    { agent: "a", turn: 1, room: "!a", msg: "a" },
    { agent: "b", turn: 2, room: "!b", msg: "b" },
    { msg: "c" },
  ]);
});
