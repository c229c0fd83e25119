import { budgetName } from "../../domain/budget/book.ts";
import type { CallUnderWay } from "../../domain/budget/metered-model.ts";
import { thousands, underWayText } from "../../domain/budget/token-text.ts";
import { includesLevel } from "../../domain/rights/permissions.ts";
import type { Limit, Spending } from "../../domain/tables/budgets.ts";
import { type CommandContext, defineCommand, noInput } from "../../engine/control/define-command.ts";

/** Spenders of each kind that an admin is shown at most. */
const most = 10;

type Named = Pick<Spending, "scope" | "key">;

export const commands = [
  defineCommand({
    command: "usage",
    topic: "spending",
    description: "Shows how much was spent today (UTC), and how much may be.",
    where: "anywhere",
    level: "chat",
    input: noInput,
    async run(_, context) {
      const accounts = await accountsShown(context);
      const spent = await context.book.table.spentToday(accounts);
      const lines = accounts.map((account) => {
        const used = spent.find(({ scope, key }) => scope === account.scope && key === account.key);
        return `- ${budgetName(account)}: ${spentText(used, limitOf(account, context))}`;
      });
      const now = callsShown(context).map((call) => `- ${underWayText(call)}`);
      return ["Today (UTC):", ...lines, ...(now.length > 0 ? ["", "Now:", ...now] : [])].join("\n");
    },
  }),
];

/** Everybody sees what they spent; who may use commands, what this room and its agents did; admins see everything. */
async function accountsShown({ agents, book, event, level, room }: CommandContext): Promise<readonly Named[]> {
  if (includesLevel(level, "admin") && (room.kind === "control" || agents.length === 0))
    return book.table.spendersToday(most);
  return [
    { scope: "requester", key: event.sender },
    ...(includesLevel(level, "use") ? [{ scope: "room" as const, key: event.roomId }] : []),
    ...(includesLevel(level, "use") ? agents.map(({ name }) => ({ scope: "agent" as const, key: name })) : []),
    ...(includesLevel(level, "admin") ? [{ scope: "bridge" as const, key: "" }] : []),
  ];
}

/** Everybody sees what is thought on their behalf; who may use commands, what is thought here; admins see everything. */
function callsShown({ event, level, model, room }: CommandContext): CallUnderWay[] {
  const seesAll = includesLevel(level, "admin") && room.kind === "control";
  const here = (call: CallUnderWay) => includesLevel(level, "use") && call.roomId === event.roomId;
  return model.underWay().filter((call) => seesAll || here(call) || call.requesters.includes(event.sender));
}

function limitOf({ scope, key }: Named, { agents, book }: CommandContext): Limit {
  const agent = scope === "agent" ? agents.find(({ name }) => name === key) : undefined;
  return agent ? book.limitOfAgent(agent) : book.limit(scope, key);
}

/** Says how much of the prompts each kind of message was, the largest first. */
function shareTexts(shares: NonNullable<Spending["shares"]>): string[] {
  const all = Object.values(shares).reduce((sum, tokens) => sum + tokens, 0) || 1;
  const sorted = Object.entries(shares).toSorted(([, one], [, other]) => other - one);
  return sorted.map(([role, tokens]) => `${role} ${Math.round((100 * tokens) / all)} %`);
}

function spentText(used: Spending | undefined, { tokens, usd }: Limit): string {
  const { calls = 0, promptTokens = 0, cachedTokens = 0, completionTokens = 0 } = used ?? {};
  const { promptChars = 0, prefixChars = 0, shares } = used ?? {};
  const of = (limit: number | undefined) => (limit === undefined ? "" : ` of ${thousands.format(limit)}`);
  const percent = (part: number, whole: number, what: string) =>
    whole > 0 ? `, ${Math.round((100 * part) / whole)} % of the prompts ${what}` : "";
  const cached = percent(cachedTokens, promptTokens, "from the cache");
  const same = percent(prefixChars, promptChars, "as in the call before");
  const all = thousands.format(promptTokens + completionTokens);
  const parts = shares ? `; prompts: ${shareTexts(shares).join(", ")}` : "";
  return `${all}${of(tokens)} tokens, ${(used?.usd ?? 0).toFixed(4)}${of(usd)} USD, in ${calls} calls${cached}${same}${parts}`;
}
