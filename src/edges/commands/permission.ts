import { z } from "zod";
import { actorKind, isActor, type Level, levels } from "../../domain/rights/permissions.ts";
import { changeText } from "../../engine/control/change.ts";
import { defineCommand, noInput } from "../../engine/control/define-command.ts";

const expected = 'a user id such as @you:example.org, a pattern such as "@*:example.org", a homeserver, or a room id';
const actor = z
  .string()
  .refine((text) => actorKind(text) !== undefined, expected)
  .describe("Who is meant: a user id, a pattern of user ids, a homeserver, or a room id for its members");

export const commands = [
  defineCommand({
    command: "permission list",
    description: "Lists who may do what, and who has set it.",
    where: "control",
    level: "admin",
    input: noInput,
    async run(_, { rights }) {
      const rows = await rights.rows();
      const lines = rows
        .toSorted((a, b) => rankOf(b.level) - rankOf(a.level))
        .map(({ actor, level, setBy, setAt }) => {
          const origin = setBy === null ? "configuration" : `${setBy}, ${setAt.toISOString().slice(0, 16)}Z`;
          return `- \`${actor}\`: ${level ?? "taken away"} (${origin})`;
        });
      return lines.join("\n") || "Nobody may do anything.";
    },
  }),
  defineCommand({
    command: "permission set",
    examples: ["@mia:example.org operate"],
    description: "Gives somebody a level, at once. The configuration does not change it any more.",
    where: "control",
    level: "admin",
    input: z.object({
      actor: actor.refine(isActor, expected),
      level: z.enum(levels, `one of ${levels.join(", ")}`).describe(levels.join(", ")),
    }),
    run: async (given, { event, rights }) =>
      changeText(await rights.set(given.actor, given.level, { key: event.eventId, actor: event.sender })),
  }),
  defineCommand({
    command: "permission remove",
    examples: ["@mia:example.org"],
    description: "Takes a rule away, at once, even one that the configuration has.",
    where: "control",
    level: "admin",
    input: z.object({ actor }),
    run: async (given, { event, rights }) =>
      changeText(await rights.set(given.actor, null, { key: event.eventId, actor: event.sender })),
  }),
];

const rankOf = (level: string | null): number => levels.indexOf(level as Level);
