import type { AgentRow } from "../../src/database/agents.ts";
import type { RoomId } from "../../src/lib/ids.ts";
import type { Actor } from "../../src/vfs/place.ts";

/** The agent's model at work for its owner in `roomId`, except for what `fields` say. */
export const actorOf = (agent: AgentRow, roomId: RoomId, fields: Partial<Actor> = {}): Actor => ({
  agent: {
    name: agent.name,
    userId: agent.userId,
    owner: agent.owner,
    personaFile: `agents:/${agent.name}/persona.md`,
    scratchPadFile: `agents:/${agent.name}/scratchpad.txt`,
  },
  roomId,
  by: "model",
  requesters: [agent.owner],
  uses: true,
  admin: false,
  sources: [roomId],
  ...fields,
});
