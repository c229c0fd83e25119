import { defineCommand, noInput } from "../../engine/control/define-command.ts";

export const commands = [
  defineCommand({
    command: "sweep",
    description: "Looks on the homeserver for events that did not reach the bridge, for every agent.",
    where: "control",
    level: "admin",
    input: noInput,
    async run(_, { sweep }) {
      sweep();
      return "The sweep has begun; what it finds is taken up like everything else.";
    },
  }),
];
