import { z } from "zod";
import { UserError } from "../../base/lib/errors.ts";
import type { RoomId, UserId } from "../../base/lib/ids.ts";
import { isRoomId, isUserId } from "../../base/lib/matrix-id.ts";
import { tellRecalled } from "../../base/prompt/recalled.ts";
import { defineTool } from "../../engine/operations/tool.ts";

const limitMost = 50;

const time = (name: string, text: string | undefined): Date | undefined => {
  if (text === undefined) return undefined;
  const at = new Date(text);
  if (Number.isNaN(at.getTime())) throw new UserError(`${name}: ${text} is no time. Write it as 2026-03-01T12:00:00Z.`);
  return at;
};

export const tool = defineTool({
  name: "SemanticSearch",
  set: "memory",
  command: "memories",
  examples: ["where the spare key is", "--user @bob:example.org --from 2026-03-01 the offer"],
  topic: "memory",
  hasNamedBehind: true,
  description: "Searches all that you remember, by its meaning and its words; the best first.",
  help: "Searches all that the agent remembers and everybody here may read; the best first.",
  wording: "Look in the memory for {query}",
  kind: "read",
  isRepeatable: true,
  input: z.object({
    query: z.string().trim().min(1).max(1_000).describe("What to look for, as a question or in keywords"),
    room: z.string().trim().optional().describe("Only what was said in this room: its id"),
    user: z.string().trim().optional().describe("Only what this person said: a full user id"),
    from: z.string().trim().optional().describe("Only from this time on, such as 2026-03-01T12:00:00Z"),
    to: z.string().trim().optional().describe("Only up to this time"),
    limit: z.int().min(1).max(limitMost).default(10).describe(`How many, up to ${limitMost}`),
  }),
  async run({ query, room, user, from, to, limit }, { agent, by, causes, memory, roomId }) {
    if (room !== undefined && !isRoomId(room))
      throw new UserError(`room: ${room} is no room id, such as !abc:example.org.`);
    if (user !== undefined && !isUserId(user))
      throw new UserError(`user: ${user} is no user id, such as @bob:example.org.`);
    const { found, sources, taint } = await memory.recall(agent, roomId, {
      text: query,
      room: room as RoomId | undefined,
      person: user as UserId | undefined,
      from: time("from", from),
      to: time("to", to),
      limit,
      except: causes,
    });
    return { ...tellRecalled(found, { by, timeZone: agent.settings.timeZone }), sources, taint };
  },
});
