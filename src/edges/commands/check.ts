import { defineCommand, noInput } from "../../engine/control/define-command.ts";

export const commands = [
  defineCommand({
    command: "check",
    description: "Checks everything that the bridge needs, and says what to do where something is wrong.",
    where: "control",
    level: "admin",
    input: noInput,
    run: async (_, { check }) => (await check()).map((line) => `- ${line}`).join("\n"),
  }),
];
