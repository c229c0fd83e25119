import { z } from "zod";
import { UserError } from "../../base/lib/errors.ts";
import { defineTool } from "../../engine/operations/tool.ts";

export const tool = defineTool({
  name: "compute",
  set: "core",
  command: "compute",
  examples: ['[..."Strawberry"].filter((letter) => letter.toLowerCase() === "r").length', "2n ** 64n"],
  description:
    "Runs JavaScript; gives the value of its last expression, and what console.log wrote. For exact arithmetic, dates, counting, sorting. No files, network or timers; 2 seconds, 64 MB.",
  help: "Runs JavaScript and shows the value of its last expression, and all that console.log wrote. There are no files, no network and no timers; a program may take 2 seconds of processor time and 64 MB.",
  wording: "Run this code",
  kind: "read",
  isRepeatable: true,
  input: z.object({
    javascript: z.string().trim().min(1).max(64_000).meta({
      description: "Without return. Date is in the agent's time zone",
      help: "The program. Its last expression is the result, without return. Dates are in the agent's time zone",
    }),
  }),
  async run({ javascript }, { agent, interpreter, now, requesters, signal }) {
    const { timeZone } = agent.settings;
    const { printed, value, error } = await interpreter.run({ code: javascript, now, timeZone }, requesters, signal);
    if (error !== undefined) {
      const before = printed === "" ? "" : `\nBefore that it wrote:\n${printed}`;
      throw new UserError(`the code failed: ${error}${before}`);
    }
    const parts = [printed, value ?? ""].filter((part) => part !== "");
    return { result: parts.join("\n") || "(no value)", isVerbatim: true };
  },
});
