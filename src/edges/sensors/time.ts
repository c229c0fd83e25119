import { lengthText } from "../../base/lib/length-text.ts";
import { element } from "../../base/lmml/element.ts";
import { clockTime } from "../../base/prompt/lean.ts";
import { eventTime } from "../../base/prompt/time.ts";
import type { Lull, OpenEnds, Sensor } from "../../engine/operations/sensor.ts";

const tidy = "Nothing has happened here for long. This is time to tidy your memory of this conversation.";

/** Notices that it is quiet: where the agent has left something open, and where it has time for itself. */
export const sensor: Sensor = {
  name: "time",
  description: "silence after something that the agent has left open, and time to tidy its memory",
  elapse: (lull) => ({
    reason: lull.open ? `quiet for ${lengthText(lull.open.quietSeconds)}` : "default mode",
    note: element("systemEvent", { timestamp: eventTime(lull.at) }, lull.open ? tellOpen(lull, lull.open) : tidy),
  }),
};

function tellOpen({ agent, at }: Lull, open: OpenEnds): string {
  const { timeZone } = agent.settings;
  const timeOf = (then: Date) => {
    const { date, minute } = clockTime(then, timeZone);
    return date === clockTime(at, timeZone).date ? minute : `${date} ${minute}`;
  };
  const ends = [
    ...(open.questionAt ? [`your question of ${timeOf(open.questionAt)}`] : []),
    ...(open.promiseAt ? [`what you said you would do, at ${timeOf(open.promiseAt)}`] : []),
    ...(open.todos.length > 0 ? [`todo ${open.todos.join(", ")}`] : []),
  ];
  const again =
    open.nextSeconds === undefined
      ? "You are not woken for it again."
      : `If the silence lasts, you are woken again in ${lengthText(open.nextSeconds)}.`;
  const silence =
    agent.settings.answer === "text"
      ? "To say nothing, answer with a single dash: -"
      : "To say nothing, end the turn without a call.";
  return `Nobody has said anything here for ${lengthText(open.quietSeconds)}. Left open: ${ends.join("; ")}. Decide whether you do or say something now: nobody has asked you to. ${silence} ${again}`;
}
