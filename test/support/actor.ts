import type { Database } from "../../src/adapters/database/connection.ts";
import type { RoomId } from "../../src/base/lib/ids.ts";
import { definitionCheck } from "../../src/domain/agents/definition-check.ts";
import type { FileSystemParts } from "../../src/domain/files/file-reader.ts";
import type { Actor } from "../../src/domain/files/place.ts";
import { openShares } from "../../src/domain/files/shares.ts";
import { unwrittenText } from "../../src/domain/files/working-files.ts";
import type { AgentRow } from "../../src/domain/tables/agents.ts";

/** Tools that sub-agents may have. */
const toolNames = ["FS_Read", "FS_Find"];

/** The shares of a bridge with one shipped guide, and room for 1 MB of files of each agent, user and room. */
export const shares = (database: Database): FileSystemParts =>
  openShares(database, {
    shipped: new Map([["/guides/clevernet.md", "# Clevernet"]]),
    since: new Date("2026-01-01T00:00:00Z"),
    quotaMegabytes: 1,
    check: definitionCheck(toolNames),
    unwritten: async (file) => unwrittenText(file),
  });

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
  isAdmin: false,
  sources: [roomId],
  isTainted: false,
  ...fields,
});
