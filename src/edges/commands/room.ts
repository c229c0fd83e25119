import { defineCommand, noInput } from "../../engine/control/define-command.ts";

const roomsMost = 50;

export const commands = [
  defineCommand({
    command: "room list",
    description: "Lists the rooms with agents in them; the room with the newest message comes first.",
    where: "control",
    level: "admin",
    input: noInput,
    async run(_, { rooms }) {
      const listed = await rooms.list(roomsMost);
      const lines = listed.map(({ roomId, kind, name, agents, humans }) => {
        const what = kind === "chat" ? agents.join(", ") || "the bot alone" : `${kind} room`;
        return `- \`${roomId}\`${name === null ? "" : ` “${name}”`}: ${what}; ${humans} ${humans === 1 ? "person" : "people"}`;
      });
      const rest = (listed[0]?.total ?? 0) - listed.length;
      return [...lines, ...(rest > 0 ? [`… and ${rest} more`] : [])].join("\n") || "No agent is in any room.";
    },
  }),
];
