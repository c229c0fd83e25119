import { describe, expect, it } from "vitest";
import type { Database, Sql } from "../../../src/adapters/database/connection.ts";
import type { RoomId } from "../../../src/base/lib/ids.ts";
import { insertOutbox, Outbox, type OutboxDraft } from "../../../src/domain/tables/outbox.ts";
import { sharedByProcesses } from "../../support/own-process.ts";
import { newKey, newRoom, newUser } from "../../support/rows.ts";
import { postgresMissing } from "../../support/shared-postgres.ts";

describe.skipIf(postgresMissing)("the order of what two processes queue for a room", () => {
  const shared = sharedByProcesses();
  const sender = newUser();
  const draft = (roomId: RoomId): OutboxDraft => ({ key: newKey(), roomId, sender, kind: "message", content: {} });
  const taken = async (database: Database, roomId: RoomId) =>
    (await new Outbox(database).take(roomId, 100)).map(({ key }) => key);

  it("is that in which it was queued, one after the other by whichever process", async () => {
    const [one, two] = [await shared.enter("one"), await shared.enter("two")];
    const processes = [one, two, two, one, one, two, one, two];
    const roomId = newRoom();
    const others = processes.flatMap(({ database }) =>
      Array.from({ length: 20 }, () => new Outbox(database).add([draft(newRoom())])),
    );
    const drafts: OutboxDraft[] = [];
    for (const { database } of processes) {
      const [first, second] = [draft(roomId), draft(roomId)];
      await new Outbox(database).add([first, second]);
      drafts.push(first, second);
    }
    await Promise.all(others);
    for (const { database } of [one, two]) expect(await taken(database, roomId)).toEqual(drafts.map(({ key }) => key));
  });

  it("is that in which it was committed, where it was queued at the same moment: nothing is held up or left out", async () => {
    const [one, two] = [await shared.enter("one"), await shared.enter("two")];
    const roomId = newRoom();
    const [slow, quick] = [draft(roomId), draft(roomId)];
    const session = await one.database.sql.reserve();
    await session`begin`;
    await session`with once as (select 1) ${insertOutbox(session as unknown as Sql, [slow], "once")}`;
    await new Outbox(two.database).add([quick]);
    expect(await taken(two.database, roomId)).toEqual([quick.key]);
    await new Outbox(two.database).sent([{ key: quick.key, eventId: undefined }]);
    await session`commit`;
    session.release();
    expect(await taken(two.database, roomId)).toEqual([slow.key]);
  });
});
