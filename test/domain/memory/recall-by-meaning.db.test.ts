import { expect, it } from "vitest";
import type { RoomId, UserId } from "../../../src/base/lib/ids.ts";
import { type MemoryQuery, MemoryRecall } from "../../../src/domain/memory/recall.ts";
import type { AgentRow } from "../../../src/domain/tables/agents.ts";
import { InteractionVectors } from "../../../src/domain/tables/interaction-vectors.ts";
import { onEachDatabase } from "../../support/database.ts";
import { addAgent, newRoom, newUser, setMember } from "../../support/rows.ts";

const model = "angle";
/** A vector that is farther from that of 0 the larger the number is, up to 1. */
const vectorOf = (far: number): string => JSON.stringify([Math.cos(far), Math.sin(far), 0]);

onEachDatabase((database) => {
  const memory = () =>
    new MemoryRecall(database(), {
      embedder: () => ({ model, embed: async () => [Float32Array.of(1, 0, 0)] }),
      ranking: () => "product",
      botUserId: "@clevernet:test" as UserId,
      rights: { findBelow: async (_, userIds) => [...userIds] },
    });
  const recall = async (agent: AgentRow, here: RoomId, more: Partial<MemoryQuery> = {}) => {
    const { found } = await memory().recall(agent, here, { text: "kettle", limit: 20, ...more });
    return found.map(({ text }) => text);
  };

  let place = 0;
  /** Things that were said in a room, the first the closest to what is sought, and none beside those of another call. */
  const fill = async (roomId: RoomId, sender: UserId, name: string, count: number, [from, to]: [number, number]) => {
    const rows = Array.from({ length: count }, (_, n) => ({
      place: place + n,
      text: `${name} ${n}`,
      vector: vectorOf(from + ((to - from) * n) / count),
    }));
    place += count + 100;
    await database().sql`
      with said as (
        insert into interactions (kind, room_id, sender, sources, speaker, text, importance, place)
        select 'observation', ${roomId}, ${sender}, array[${roomId}], 'ada', 'ada: ' || text, 0.3, place
        from jsonb_to_recordset(${database().sql.json(rows)}) as r(place integer, text text)
        returning id, text
      )
      insert into interaction_vectors (interaction_id, model, chunk, vector)
      select said.id, ${model}, 0, r.vector::vector
      from said join jsonb_to_recordset(${database().sql.json(rows)}) as r(text text, vector text) on said.text = 'ada: ' || r.text`;
  };

  const scene = async () => {
    await new InteractionVectors(database()).index({ model, dimensions: 3 });
    const [agent, ada, bob] = [await addAgent(database()), newUser(), newUser()];
    const [here, closed] = [newRoom(), newRoom()];
    for (const member of [agent.userId, ada, bob]) await setMember(database(), here, member, "join");
    for (const member of [agent.userId, ada]) await setMember(database(), closed, member, "join");
    return { agent, ada, bob, here, closed };
  };

  it("finds by meaning as many as were asked for, however much that is closer stands behind a wall", async () => {
    const { agent, ada, here, closed } = await scene();
    await fill(closed, ada, "secret", 600, [0, 0.2]);
    await fill(here, ada, "open", 60, [0.8, 0.9]);
    expect(await recall(agent, here)).toHaveLength(20);
  });

  it("finds by meaning what the filter leaves among thousands that are closer", async () => {
    const { agent, ada, bob, here } = await scene();
    await fill(here, ada, "loud", 3_000, [0, 0.2]);
    await fill(here, bob, "quiet", 25, [0.8, 0.9]);
    const found = await recall(agent, here, { person: bob });
    expect(found).toHaveLength(20);
    expect(found.every((text) => text.startsWith("quiet"))).toBe(true);
  });

  it("finds by meaning what somebody said who is named, among thousands that are closer", async () => {
    const { agent, ada, bob, here } = await scene();
    await fill(here, ada, "loud", 3_000, [0, 0.2]);
    await fill(here, bob, "quiet", 25, [0.3, 0.35]);
    expect(await recall(agent, here)).not.toContain("quiet 0");
    const name = bob.slice(1).split(":")[0];
    expect((await recall(agent, here, { text: `What of ${name}?` }))[0]).toBe("quiet 0");
  });

  it("finds by meaning what somebody said who is named and has said thousands of things", async () => {
    const { agent, ada, bob, here } = await scene();
    await fill(here, ada, "loud", 3_000, [0, 0.2]);
    await fill(here, bob, "often", 2_500, [0.6, 1.5]);
    await fill(here, bob, "once", 3, [0.3, 0.31]);
    const name = bob.slice(1).split(":")[0];
    expect((await recall(agent, here, { text: `What of ${name}?` }))[0]).toMatch(/^once/);
  });

  it("finds by meaning nothing behind a wall of somebody who is named", async () => {
    const { agent, ada, bob, here, closed } = await scene();
    await fill(closed, ada, "secret", 5, [0, 0.2]);
    await fill(here, bob, "open", 3, [0.8, 0.9]);
    const name = ada.slice(1).split(":")[0];
    const found = await recall(agent, here, { text: `What of ${name}?` });
    expect(found.every((text) => text.startsWith("open"))).toBe(true);
  });

  it("finds by meaning nothing of another agent's own, and of what stands beside it", async () => {
    const { agent, ada, here } = await scene();
    const other = await addAgent(database());
    await setMember(database(), here, other.userId, "join");
    await fill(here, ada, "said", 2, [0, 0.1]);
    await database().sql`
      with kept as (
        insert into interactions (kind, agent, room_id, sender, sources, speaker, text, importance)
        values ('thought', ${other.name}, ${here}, ${other.userId}, array[${here}], 'other', 'other: a secret', 0.3)
        returning id
      )
      insert into interaction_vectors (interaction_id, model, chunk, vector)
      select id, ${model}, 0, ${vectorOf(0)}::vector from kept`;
    expect((await recall(agent, here)).toSorted()).toEqual(["said 0", "said 1"]);
    expect(await recall(other, here)).toContain("a secret");
  });

  it("finds by meaning the closest among thousands", async () => {
    const { agent, ada, here } = await scene();
    await fill(here, ada, "far", 3_000, [0.5, 1.5]);
    await fill(here, ada, "near", 20, [0, 0.1]);
    const found = await recall(agent, here);
    expect(found.filter((text) => text.startsWith("near"))).toHaveLength(20);
  });
});
