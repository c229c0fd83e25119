import { z } from "zod";
import { threadPlaceOf } from "../../adapters/matrix/relation.ts";
import { UserError } from "../../base/lib/errors.ts";
import { digest } from "../../base/lib/ids.ts";
import { stepSpendingText, underWayText } from "../../domain/budget/token-text.ts";
import { fileDraft } from "../../domain/speech/utter.ts";
import type { StepSpending } from "../../domain/tables/budgets.ts";
import type { Render } from "../../domain/tables/renders.ts";
import { defineAgentCommand } from "../../engine/control/define-command.ts";

const removed = "(removed, since something in it was redacted)";

const stepText = ({ n, subAgent, system, prompt }: Render, spent: readonly StepSpending[]): string => {
  const tokens = spent.filter((call) => call.n === n).map((call) => `\n\n${stepSpendingText(call)}`);
  const title = `# Step ${n}${subAgent === null ? "" : ` of ${subAgent}`}${tokens.join("")}`;
  return system === "" ? `${title}\n\n${removed}` : `${title}\n\n## System\n\n${system}\n\n## User\n\n${prompt}`;
};

/** The tools that were offered, each set once, with the steps that it was offered in. */
const toolsTexts = (shown: readonly Render[]): string[] =>
  [...Map.groupBy(shown, ({ tools }) => tools)].map(
    ([tools, steps]) => `# Tools of step ${steps.map(({ n }) => n).join(", ")}\n\n${tools}`,
  );

export const commands = [
  defineAgentCommand({
    command: "show turn",
    examples: ["42"],
    topic: "approvals",
    description:
      "Posts a file with exactly what the agent was shown in a turn here, and how many tokens each message had.",
    level: "use",
    input: z.object({
      number: z.int().min(1).optional().describe("The turn's number; without it the newest one in this room"),
    }),
    positional: ["number"],
    /** Only where everybody in the room may read all that was shown. */
    async run({ number }, { agent, book, event, message, history, model, renders, turns }) {
      const turn = await turns.findTurn({ agent: agent.name, roomId: event.roomId }, number);
      const audience = await history.audience(event.roomId, agent.owner);
      const shown = turn ? await renders.of(turn.id, audience) : [];
      if (!turn || shown?.length === 0)
        throw new UserError(`There is no such turn of ${agent.displayName} in this room within the last 3 days.`);
      if (!shown || !(await history.mayReadAll(audience, turn.sources, agent.owner)))
        throw new UserError("Something was shown in that turn which not everybody in this room may read.");
      const spent = await book.table.ofTurn(turn.id);
      const now = model.underWay().filter(({ turnId }) => turnId === turn.id);
      const text = [
        ...shown.map((step) => stepText(step, spent)),
        ...now.map((call) => `# Now\n\n${underWayText(call)}`),
        ...toolsTexts(shown),
      ].join("\n\n");
      // A file that shows something redacted is not sent, and of such steps there is nothing in it.
      const shows = [...new Set(shown.flatMap(({ eventIds, system }) => (system === "" ? [] : eventIds)))];
      const name = `turn-${turn.number}.md`;
      const { sender, roomId } = { sender: agent.userId, roomId: event.roomId };
      const thread = threadPlaceOf(message.threadId, event.eventId);
      const key = digest("show", event.eventId);
      return { text: "", outbox: [fileDraft({ sender, roomId, name, text, thread, key, shows })] };
    },
  }),
];
