import { inlineCode } from "../../adapters/matrix/markdown.ts";
import { UserError } from "../../base/lib/errors.ts";
import { HOME } from "../../base/lib/ids.ts";
import { lengthText } from "../../base/lib/length-text.ts";
import type { Agent } from "../../domain/agents/agent.ts";
import { limitText } from "../../domain/budget/book.ts";
import type { EmbeddingState } from "../../domain/memory/embeddings.ts";
import { includesLevel } from "../../domain/rights/permissions.ts";
import type { Sandboxes } from "../../domain/sandboxes/sandboxes.ts";
import type { Operation } from "../../domain/tables/operations.ts";
import { type CommandContext, defineCommand, noInput } from "../../engine/control/define-command.ts";
import { modeIn } from "../../engine/operations/gate.ts";

export const commands = [
  defineCommand({
    command: "status",
    description:
      "Shows what the agent is doing, with which model and mode; in the control room, what all agents are doing.",
    where: "anywhere",
    level: "chat",
    input: noInput,
    async run(_, context) {
      if (context.room.kind === "control") return overviewText(context);
      if (context.agents.length === 0) throw new UserError("There is no agent here.");
      return (await Promise.all(context.agents.map((agent) => statusOf(agent, context)))).join("\n\n");
    },
  }),
];

/** All agents at once; of what they do no content is shown, since it may be behind a wall. */
async function overviewText({ book, embeddings, level, overview, prefix, sandboxes }: CommandContext): Promise<string> {
  if (!includesLevel(level, "admin")) throw new UserError(`To see this you need the level admin; you have: ${level}.`);
  const account = { scope: "bridge" as const, key: "" };
  const [now, [spent]] = await Promise.all([overview(), book.table.spentToday([account])]);
  const { atWork, backlog, nextInSeconds, paused, questions, schedules, turns, waiting } = now;
  const { calls = 0, promptTokens = 0, completionTokens = 0, usd = 0 } = spent ?? {};
  const late = [
    // The command itself is one of the events.
    ["event", "to route", backlog.events - 1, backlog.eventsAge],
    ["wake", "to work on", backlog.wakes, backlog.wakesAge],
    ["message", "to send", backlog.outbox, backlog.outboxAge],
  ] as const;
  const waits = late.flatMap(([what, goal, count, age]) =>
    count > 0 ? [`${count} ${what}${count === 1 ? "" : "s"} ${goal}, the oldest for ${durationText(age)}`] : [],
  );
  const work = atWork.map(({ agent, reason, roomId, roomName, seconds }) => {
    const place = roomId === HOME ? "at home" : `in ${inlineCode(roomName ?? roomId)}`;
    return `  - ${agent} ${place}, for ${durationText(seconds)} (${reason})`;
  });
  const asked = waiting.map(
    ({ agent, id, secondsLeft, tool }) => `  - ${id}: ${agent}, ${tool}, for another ${durationText(secondsLeft)}`,
  );
  return [
    `- agents: ${now.agents}${paused.length > 0 ? `, paused: ${paused.join(", ")}` : ""}`,
    `- at work: ${turns} ${turns === 1 ? "turn" : "turns"}`,
    ...cutAt(work, turns),
    `- waiting for approval: ${questions}${questions > 0 ? ` (\`${prefix}operation N\` shows one)` : ""}`,
    ...cutAt(asked, questions),
    `- schedules: ${schedules}${nextInSeconds === null ? "" : `, the next ${nextText(nextInSeconds)}`}`,
    `- computers: ${await computersText(sandboxes)}`,
    `- memory: ${memoryText(embeddings.state)}${embeddings.state.by === "meaning" && backlog.memories > 0 ? `; ${thousands.format(backlog.memories)} wait to be embedded` : ""}`,
    `- waiting to be done: ${waits.join("; ") || "nothing"}`,
    `- spent today (UTC): ${thousands.format(promptTokens + completionTokens)} tokens, ${usd.toFixed(4)} USD, in ${calls} calls; ${limitText(book.limit("bridge", ""))}`,
  ].join("\n");
}

/** How many computers run, by their machine where there are several; or why there are none. */
async function computersText(sandboxes: Sandboxes): Promise<string> {
  const { pool } = sandboxes;
  if (pool.refusal !== undefined) return pool.refusal;
  const running = await sandboxes.seen.countAwake();
  const texts = pool.all.map(({ awaySeconds, name, runningMost, selfTest }) => {
    const count = `${running.get(name) ?? 0} of at most ${runningMost} run`;
    const trouble =
      awaySeconds === undefined ? selfTest.refusal : `it does not answer for ${durationText(awaySeconds)}`;
    return `${pool.all.length > 1 ? `${name}: ` : ""}${trouble ?? count}`;
  });
  return texts.join("; ");
}

/** How memory is searched now. */
function memoryText(state: EmbeddingState): string {
  if (state.by === "meaning") return `searched by words and by meaning (${inlineCode(state.model)})`;
  if (state.by === "words") return `searched by words alone: ${state.why}`;
  return `searched by words alone, while the embedding model is fetched (${Math.floor((100 * state.done) / state.total)} %)`;
}

const thousands = new Intl.NumberFormat("en");

const cutAt = (lines: readonly string[], count: number): string[] =>
  count > lines.length ? [...lines, `  - … and ${count - lines.length} more`] : [...lines];

const nextText = (seconds: number): string => (seconds <= 0 ? "now" : `in ${durationText(seconds)}`);

/** `12 s`, `5 min`, `3 h` or `2 days`: one unit, of which there is at least one. */
function durationText(seconds: number): string {
  const whole = Math.max(0, Math.round(seconds));
  if (whole < 120) return `${whole} s`;
  if (whole < 7_200) return `${Math.floor(whole / 60)} min`;
  return whole < 172_800 ? `${Math.floor(whole / 3_600)} h` : `${Math.floor(whole / 86_400)} days`;
}

async function statusOf(seen: Agent, context: CommandContext): Promise<string> {
  const { event, operations, sandboxes, silences, turns, directory, rooms, view, clock } = context;
  // Another command may just have changed what the router has seen.
  const agent = (await directory.find(seen.name)) ?? seen;
  const mode = modeIn(agent, await rooms.mode(event.roomId));
  const conversation = { agent: agent.name, roomId: event.roomId };
  const after = agent.settings.followUpAfterSeconds;
  const [open, under, computer, hushed] = await Promise.all([
    turns.open(conversation),
    operations.open(conversation),
    sandboxes.seen.find(conversation),
    after === null ? undefined : silences.hushedUntil(conversation),
  ]);
  const turn = open.find(({ state }) => state === "running");
  const seconds = turn ? Math.round((clock.now().getTime() - turn.startedAt.getTime()) / 1000) : 0;
  return [
    `**${agent.displayName}** (${agent.userId})`,
    `- model: ${view.modelOf(agent)}`,
    `- mode: ${mode}${mode === agent.settings.mode ? "" : ` (this room's; its own is ${agent.settings.mode})`}`,
    `- wakes by itself: ${agent.wakeUpTimerSeconds === null ? "never" : `after ${agent.wakeUpTimerSeconds} s without a turn`}`,
    ...(after === null ? [] : [followUpText(after, hushed, context.prefix)]),
    turn ? `- at work here: turn ${turn.number} (${turn.reason}), for ${seconds} s` : "- at work here: no",
    ...(computer ? [`- computer: ${computer.isAwake ? "runs" : "is stopped"} (\`${context.prefix}sandbox\`)`] : []),
    ...under.filter(({ state }) => state === "asked").map(waitingText),
  ].join("\n");
}

/** When the agent speaks up because nobody answers. */
const followUpText = (after: number, hushed: Date | "always" | undefined, prefix: string): string => {
  if (hushed === "always") return `- speaks up here by itself: never, until \`${prefix}quiet off\``;
  if (hushed) return `- speaks up here by itself: not until ${hushed.toISOString().slice(0, 16)}Z`;
  return `- speaks up here by itself: after ${lengthText(after)} without an answer`;
};

const waitingText = ({ cardRoom, decision, expiresAt, id, roomId, tool }: Operation): string => {
  if (decision === "approved") return `- operation ${id} (${tool}) was approved, and is about to begin`;
  const until = expiresAt ? `, until ${expiresAt.toISOString().slice(0, 19)}Z` : "";
  return `- operation ${id} (${tool}) waits for approval${cardRoom === roomId ? "" : " in the control room"}${until}`;
};
