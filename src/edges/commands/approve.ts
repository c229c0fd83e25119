import { z } from "zod";
import { defineCommand } from "../../engine/control/define-command.ts";
import { operationNumber } from "../../engine/operations/operation-number.ts";

export const commands = [
  defineCommand({
    command: "approve",
    examples: ["17"],
    topic: "approvals",
    description: "Approves an operation that waits for it: it is carried out at once.",
    where: "anywhere",
    level: "operate",
    input: z.object({ number: operationNumber }),
    async run({ number }, { approvals, event: { roomId, sender } }) {
      await approvals.decideNumber(number, { isApproved: true, by: sender, roomId });
      return `Operation ${number} is approved, and is being carried out.`;
    },
  }),
];
