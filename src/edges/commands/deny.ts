import { z } from "zod";
import { defineCommand } from "../../engine/control/define-command.ts";
import { operationNumber } from "../../engine/operations/operation-number.ts";

export const commands = [
  defineCommand({
    command: "deny",
    examples: ["17 Not before the review"],
    topic: "approvals",
    description: "Denies an operation that waits for approval. The agent is told your reason.",
    where: "anywhere",
    level: "operate",
    input: z.object({ number: operationNumber, why: z.string().describe("Your reason").optional() }),
    positional: ["why"],
    async run({ number, why }, { approvals, event: { roomId, sender } }) {
      await approvals.decideNumber(number, { isApproved: false, by: sender, roomId, because: why });
      return `Operation ${number} is denied.`;
    },
  }),
];
