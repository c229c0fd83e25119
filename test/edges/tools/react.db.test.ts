import { expect, it } from "vitest";
import { systemClock } from "../../../src/base/lib/clock.ts";
import type { AgentName } from "../../../src/base/lib/ids.ts";
import { silentLog } from "../../../src/base/lib/log.ts";
import { AgentDirectory } from "../../../src/domain/agents/agent.ts";
import { parseAgentSettings } from "../../../src/domain/agents/settings.ts";
import { Events } from "../../../src/domain/tables/events.ts";
import { tool as react } from "../../../src/edges/tools/react.ts";
import { toolContext } from "../../../src/engine/operations/tool-context.ts";
import { onEachDatabase } from "../../support/database.ts";
import { mindOf } from "../../support/mind.ts";
import {
  newEventId,
  newKey,
  newRoom,
  newUser,
  rightsOf,
  setMember,
  settleEvent,
  storeEvent,
} from "../../support/rows.ts";

onEachDatabase((database) => {
  it("a reaction is sent to a message of the room, and refused for whatever is none", async () => {
    const [name, ann, roomId, other] = [newKey().replace(" ", "") as AgentName, newUser(), newRoom(), newRoom()];
    const directory = new AgentDirectory(database(), systemClock, silentLog);
    const settings = parseAgentSettings({}, "test");
    await directory.seed({ name, owner: ann, persona: undefined, settings }, "test");
    const agent = await directory.find(name);
    if (!agent) throw new Error("it was not added");
    const joined = await setMember(database(), roomId, agent.userId, "join");
    await setMember(database(), other, agent.userId, "join");
    const rights = await rightsOf(database(), { [ann]: "operate" });
    const mind = mindOf(database(), { modelUrl: "http://127.0.0.1:9", rights, tools: [] });
    const call = async (eventId: string, room?: string) => {
      const key = newKey();
      const from = { agent, roomId, thread: undefined, key, chain: "$event", by: "model" as const, requesters: [ann] };
      const signal = new AbortController().signal;
      const context = await toolContext(mind, { ...from, sources: [roomId], taint: [], signal });
      return react.run({ eventId, key: "👍", ...(room && { roomId: room }) }, context, "create");
    };
    const message = await storeEvent(database(), { roomId });
    const redacted = await storeEvent(database(), { roomId });
    await new Events(database()).redact(redacted.eventId);
    expect((await call(message.eventId)).outbox).toMatchObject([{ kind: "reaction", roomId }]);
    const said = await settleEvent(database(), { roomId });
    const content = { "m.relates_to": { event_id: said.eventId } };
    expect((await call(String((await new Events(database()).find(said.eventId))?.number))).outbox).toMatchObject([
      { content },
    ]);
    const unknown = newEventId();
    for (const [eventId, room] of [
      [unknown],
      [joined.eventId],
      [redacted.eventId],
      [message.eventId, other],
      ["99"],
    ] as const)
      await expect(call(eventId, room)).rejects.toThrow(`There is no message ${eventId} in the room ${room ?? roomId}`);
  });
});
