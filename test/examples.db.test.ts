import { readFile } from "node:fs/promises";
import { beforeAll, expect, it } from "vitest";
import { Stars } from "../examples/tables/stars.ts";
import { onEachDatabase } from "./support/database.ts";
import { newRoom, newUser, storeEvent } from "./support/rows.ts";

// The table of docs/contributing.md works on both databases.

onEachDatabase((database) => {
  beforeAll(async () => {
    const migration = await readFile(new URL("../examples/migrations/NNNN-stars.sql", import.meta.url), "utf8");
    await database().sql.unsafe(migration).simple();
  });

  it("a person finds their own stars, the newest first, each once", async () => {
    const stars = new Stars(database());
    const [ann, bob, roomId] = [newUser(), newUser(), newRoom()];
    const [first, second] = [await storeEvent(database(), { roomId }), await storeEvent(database(), { roomId })];
    for (const { eventId } of [first, second, second]) await stars.add(ann, eventId);
    expect(await stars.of(ann)).toEqual([second.eventId, first.eventId]);
    expect(await stars.of(bob)).toEqual([]);
  });
});
