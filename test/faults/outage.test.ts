import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { answerEach } from "../support/answers.ts";
import { obey } from "../support/obedient.ts";
import {
  askThrough,
  killOne,
  missEvents,
  modelHangs,
  restartOften,
  shareRooms,
  talkThrough,
} from "../support/outages.ts";
import { PostgresServer } from "../support/postgres.ts";
import { Stage } from "../support/stage.ts";
import type { TestUser } from "../support/user.ts";

const minute = 60_000;

describe("a bridge", () => {
  let stage: Stage;
  let ann: TestUser;
  let ben: TestUser;
  beforeAll(async () => {
    const agents = { helper: { maxConcurrentTurns: 32 } };
    stage = await Stage.set({ database: "postgres", agents });
    stage.model.onEvery(answerEach);
    [ann, ben] = [await stage.user("ann"), await stage.user("ben")];
    await stage.bridge.start();
  });
  afterAll(() => stage.strike());

  it("that was away finds 1,000 events when it comes, and answers each room once", async () => {
    const rooms: string[] = [];
    while (rooms.length < 10) rooms.push(await stage.room(ann, [ben], ["helper"]));
    await missEvents(stage, [ann, ben], rooms, 100);
  });

  it("whose model hangs for 75 s answers the homeserver within 100 ms all the same", async () => {
    const rooms = await Promise.all(Array.from({ length: 8 }, () => stage.directRoom(ann)));
    expect(await modelHangs(stage, ann, rooms, 75_000)).toBeLessThan(100);
  });

  it("that has 200 turns to do answers the homeserver within a second", async () => {
    const rooms: string[] = [];
    while (rooms.length < 200) rooms.push(...(await Promise.all([1, 2, 3, 4].map(() => stage.directRoom(ann)))));
    expect(await modelHangs(stage, ann, rooms, 5_000)).toBeLessThan(1_000);
  });
});

it(
  "a PostgreSQL that restarts every 5 to 10 s for 5 minutes costs two processes no answer, and no operation",
  async () => {
    const server = await PostgresServer.create();
    const { url } = await server.createDatabase();
    const stage = await Stage.set({ database: "postgres", postgresUrl: url, processes: 2 });
    try {
      obey(stage.model).onEvery(answerEach);
      const [ann, admin] = [await stage.user("ann"), await stage.user("admin")];
      for (const bridge of stage.bridges) await bridge.start();
      const rooms = await Promise.all([1, 2, 3].map(() => stage.directRoom(ann)));
      const room = await stage.directRoom(admin);
      await talkThrough(stage, ann, rooms, 4_000, () =>
        askThrough(stage, admin, room, restartOften(server, 5 * minute)),
      );
    } finally {
      await stage.strike();
      await server.dispose();
    }
  },
  12 * minute,
);

it("one of four processes that is killed under load costs no answer", async () => {
  const stage = await Stage.set({ database: "postgres", processes: 4 });
  try {
    stage.model.onEvery(answerEach);
    const ann = await stage.user("ann");
    await Promise.all(stage.bridges.map((bridge) => bridge.start()));
    const rooms = await shareRooms(stage, ann);
    // There is always a turn under way that the process has to leave.
    stage.toModel.delay(300);
    await talkThrough(stage, ann, rooms, 1_000, () => killOne(stage));
  } finally {
    await stage.strike();
  }
});
