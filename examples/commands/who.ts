import { defineCommand, noInput } from "../../src/engine/control/define-command.ts";

export const commands = [
  defineCommand({
    command: "who",
    description: "Lists the people in this room, and what each of them may do.",
    where: "room",
    level: "use",
    input: noInput,
    async run(_, { event, rights, rooms }) {
      const people = await rooms.humans(event.roomId);
      const lines = await Promise.all(people.map(async (userId) => `- ${userId}: ${await rights.of(userId)}`));
      return lines.join("\n");
    },
  }),
];
