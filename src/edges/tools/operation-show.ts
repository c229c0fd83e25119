import { z } from "zod";
import { UserError } from "../../base/lib/errors.ts";
import { eventTime } from "../../base/prompt/time.ts";
import { seatOf } from "../../domain/desk/desk.ts";
import type { Operation } from "../../domain/tables/operations.ts";
import { operationNumber } from "../../engine/operations/operation-number.ts";
import { defineTool } from "../../engine/operations/tool.ts";

export const tool = defineTool({
  name: "Operation_Show",
  set: "core",
  examples: ["17"],
  topic: "approvals",
  description: "Shows one of your operations again, with its whole result.",
  help: "Shows an operation of the agent, as the agent is shown it: `!operation` tells more.",
  kind: "read",
  isOwn: true,
  isRepeatable: true,
  input: z.object({ number: operationNumber.meta({ help: "Its number" }) }),
  async run({ number }, { agent, operations, roomId }) {
    const operation = await operations.shown(seatOf(agent, roomId), number);
    if (!operation)
      throw new UserError(
        `There is no operation ${number} of yours, or not everybody here may read what it was made from.`,
      );
    const { roomId: madeIn, sources, taint } = operation;
    return { result: textOf(operation), isVerbatim: true, sources: [madeIn, ...sources], taint };
  },
});

/** The result stands first: a long input must not take its place. */
const textOf = ({ createdAt, error, id, input, result, state, tool: name }: Operation): string =>
  [
    `operation ${id}, ${name}, ${state}, ${eventTime(createdAt)}`,
    result ?? error ?? "There is no result yet.",
    `It was called with: ${JSON.stringify(input)}`,
  ].join("\n\n");
