import { expect, it } from "vitest";
import type { MatrixClient } from "../../../src/adapters/matrix/client.ts";
import { systemClock } from "../../../src/base/lib/clock.ts";
import type { RoomId, UserId } from "../../../src/base/lib/ids.ts";
import { silentLog } from "../../../src/base/lib/log.ts";
import { AgentDirectory } from "../../../src/domain/agents/agent.ts";
import { History } from "../../../src/domain/tables/history.ts";
import { Outbox } from "../../../src/domain/tables/outbox.ts";
import { Rooms } from "../../../src/domain/tables/rooms.ts";
import { Turns } from "../../../src/domain/tables/turns.ts";
import { ThoughtsRooms } from "../../../src/edges/delivery/thoughts-room.ts";
import { onEachDatabase } from "../../support/database.ts";
import { addAgent, newRoom, rightsOf, settleEvent, wake } from "../../support/rows.ts";

onEachDatabase((database) => {
  const encrypt = (roomId: RoomId) =>
    settleEvent(
      database(),
      { roomId, type: "m.room.encryption", stateKey: "" },
      { state: { type: "m.room.encryption", content: {}, sender: "@ann:test" as UserId } },
    );
  /** An agent whose thoughts room is made already. */
  const prepare = async () => {
    const [agent, room, open] = [await addAgent(database()), newRoom(), newRoom()];
    const directory = new AgentDirectory(database(), systemClock, silentLog);
    await directory.table.thoughtsRoomMade(agent.name, room);
    const turns = new Turns(database(), "a test");
    const begin = async (roomId: RoomId) => {
      await wake(database(), { agent: agent.name, roomId });
      const turn = await turns.claim({ agent: agent.name, roomId }, 4);
      if (typeof turn === "string") throw new Error(turn);
      let n = 0;
      const think = (text: string, ends = false) =>
        turns.commit(turn, { n: n++, name: "model", result: {}, ephemeris: [`<thought>${text}</thought>`], ends });
      return { think, end: () => think("done", true) };
    };
    /** Has all told that was not, and gives what the thoughts room has been told so far. */
    const tell = async (before = (_: ThoughtsRooms) => {}) => {
      const rooms = new ThoughtsRooms({
        client: { botUserId: "@clevernet:test" as UserId } as MatrixClient,
        directory,
        history: new History(database()),
        outbox: new Outbox(database()),
        rooms: new Rooms(database()),
        rights: await rightsOf(database(), {}),
        serverName: "test",
        clock: systemClock,
        log: silentLog,
        onOutbox: () => {},
      });
      before(rooms);
      rooms.nudge(agent.name);
      await rooms.stop();
      const rows = await new Outbox(database()).take(room, 20);
      return rows.map(({ content }) => String((content as { body?: string }).body));
    };
    return { agent, open, begin, tell };
  };

  it("shows that a call goes on, not all the time, and of one in an encrypted room nothing", async () => {
    const { agent, open, tell } = await prepare();
    const closed = newRoom();
    await encrypt(closed);
    const shown = (roomId: RoomId) =>
      tell((rooms) => {
        for (const part of [1, 2, 3]) rooms.show(agent.name, roomId, `find is at ${part} of 3.`);
      });
    expect(await shown(closed)).toEqual([]);
    expect(await shown(open)).toEqual([`${agent.name} (${agent.userId}): find is at 1 of 3.`]);
  });

  it("tells of a turn in an encrypted room that there was one, once, and of others what was thought", async () => {
    const { agent, open, begin, tell } = await prepare();
    const closed = newRoom();
    await encrypt(closed);
    const [secret, other] = [await begin(closed), await begin(open)];
    await secret.think("a secret");
    await other.think("nothing special");
    const name = `${agent.name} (${agent.userId}):`;
    const first = `${name} *worked in an encrypted room: its thoughts are not shown here*\n\n${name} nothing special`;
    expect(await tell()).toEqual([first]);
    await secret.think("a secret");
    await secret.end();
    expect(await tell()).toEqual([first]);
    await other.end();
    expect(await tell()).toEqual([first, `${name} done`]);
    await (await begin(closed)).end();
    expect((await tell()).at(-1)).toBe(`${name} *worked in an encrypted room: its thoughts are not shown here*`);
  });
});
