import { z } from "zod";
import { UserError } from "../../base/lib/errors.ts";
import { digest } from "../../base/lib/ids.ts";
import { isRoomId, isUserId } from "../../base/lib/matrix-id.ts";
import { budgetName, budgetScopes, each, limitText } from "../../domain/budget/book.ts";
import type { BudgetScope } from "../../domain/tables/budgets.ts";
import { type CommandContext, defineCommand, noInput } from "../../engine/control/define-command.ts";

const scope = z
  .enum(budgetScopes, `one of ${budgetScopes.join(", ")}`)
  .describe("Whose budget: bridge, agent, room or requester (a person)");
const key = z
  .string()
  .optional()
  .describe(`The agent's name, the room's id or the person's user id; ${each} for each one; nothing for the bridge`);
const limit = () => z.number().min(0).max(Number.MAX_SAFE_INTEGER).optional();

export const commands = [
  defineCommand({
    command: "budget",
    topic: "spending",
    description: "Lists all limits for a day (UTC).",
    where: "anywhere",
    level: "admin",
    input: noInput,
    async run(_, { book }) {
      const limits = book.all();
      if (limits.length === 0) return "There are no limits.";
      return limits.map((account) => `- ${budgetName(account)}: ${limitText(account)}`).join("\n");
    },
  }),
  defineCommand({
    command: "budget set",
    examples: ["--usd 5 agent helper", "--tokens 2000000 bridge"],
    topic: "spending",
    description: "Limits how much may be spent on one day (UTC). It counts instead of the configuration.",
    where: "anywhere",
    level: "admin",
    input: z.object({
      scope,
      key,
      tokens: limit().describe("Tokens of prompts and answers"),
      usd: limit().describe("US dollars"),
    }),
    positional: ["key"],
    async run({ tokens, usd, ...names }, context) {
      const limit = { tokens: tokens === undefined ? undefined : Math.floor(tokens), usd };
      return change(names, limit, context);
    },
  }),
  defineCommand({
    command: "budget reset",
    examples: ["agent helper"],
    topic: "spending",
    description: "Takes away a limit that was set by command. The configuration counts again.",
    where: "anywhere",
    level: "admin",
    input: z.object({ scope, key }),
    positional: ["key"],
    run: (names, context) => change(names, null, context),
  }),
];

async function change(
  names: { scope: BudgetScope; key?: string | undefined },
  limit: { tokens: number | undefined; usd: number | undefined } | null,
  { book, directory, event }: CommandContext,
): Promise<string> {
  const account = { scope: names.scope, key: names.key ?? "" };
  const known = {
    bridge: () => account.key === "",
    agent: async () => (await directory.all()).some(({ name }) => name === account.key),
    room: () => isRoomId(account.key),
    requester: () => isUserId(account.key),
  };
  if (!(account.scope !== "bridge" && account.key === each) && !(await known[account.scope]()))
    throw new UserError(
      account.scope === "bridge" ? "The bridge's budget has no key." : `There is no ${account.scope} "${account.key}".`,
    );
  const written = { key: digest("budget", event.eventId), actor: event.sender };
  const { before, after } = await book.setLimit(account.scope, account.key, limit, written);
  return `The budget of ${budgetName(account)} was ${limitText(before)}, and is now ${limitText(after)}.`;
}
