import { defineCommand, noInput } from "../../engine/control/define-command.ts";

export const commands = [
  defineCommand({
    command: "sweep",
    description: "Asks the homeserver what it has not pushed, for every agent.",
    where: "control",
    level: "admin",
    input: noInput,
    async run(_, { sweep }) {
      sweep();
      return "The sweep has begun; what it finds is taken up like everything else.";
    },
  }),
];
