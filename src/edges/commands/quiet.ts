import { z } from "zod";
import { UserError } from "../../base/lib/errors.ts";
import { lengthText } from "../../base/lib/length-text.ts";
import { defineCommand } from "../../engine/control/define-command.ts";

const expected = "off, or a time such as 30m, 2h or 3d";
const units = { m: 60, h: 3_600, d: 86_400 } as const;
/** Longest time that can be said; without one, it holds until it is ended. */
const daysMost = 365;

/** Seconds of a time as people write it. */
function secondsOf(time: string): number {
  const [, count = "", unit = "m"] = /^(\d{1,5})([mhd])$/.exec(time) ?? [];
  const seconds = Number(count) * units[unit as keyof typeof units];
  if (seconds > 0 && seconds <= daysMost * units.d) return seconds;
  throw new UserError(`\`${time}\` is no time, or longer than a year: write ${expected}.`);
}

export const commands = [
  defineCommand({
    command: "quiet",
    examples: ["2h", "off"],
    description:
      "Has agents not speak up here by themselves when nobody answers them, until `off` or for a time. They still answer, and do what is scheduled.",
    where: "room",
    level: "chat",
    input: z.object({ time: z.string().max(20).optional().describe("30m, 2h or 3d; or off") }),
    positional: ["time"],
    async run({ time }, { agents, clock, event, prefix, silences }) {
      const word = time?.trim().toLowerCase();
      const seconds = word === undefined || word === "off" ? undefined : secondsOf(word);
      const until = word === "off" ? null : seconds === undefined ? "always" : inSeconds(clock.now(), seconds);
      const lines: string[] = [];
      for (const agent of agents) {
        await silences.hush({ agent: agent.name, roomId: event.roomId }, until);
        const { followUpAfterSeconds: after } = agent.settings;
        const named = `- ${agent.displayName}`;
        if (after === null) lines.push(`${named} never speaks up by itself (\`followUpAfterSeconds\` is \`null\`).`);
        else if (until === null)
          lines.push(`${named} may speak up here again, after ${lengthText(after)} without an answer.`);
        else if (until === "always")
          lines.push(`${named} does not speak up here by itself until \`${prefix}quiet off\`.`);
        else lines.push(`${named} does not speak up here by itself until ${until.toISOString().slice(0, 16)}Z.`);
      }
      return lines.join("\n");
    },
  }),
];

const inSeconds = (now: Date, seconds: number): Date => new Date(now.getTime() + seconds * 1_000);
