import { isTidying, tidyingReminder } from "../../base/prompt/default-mode.ts";
import {
  lastTextSpeaks,
  nobodyHeardYou,
  oneCallAtATime,
  onlyFunctionsSpeak,
  thinkBeforeCalling,
} from "../../base/prompt/reminders.ts";
import type { Agent } from "../../domain/agents/agent.ts";
import type { AgentSettings } from "../../domain/agents/settings.ts";
import type { Turn } from "../../domain/tables/turns.ts";
import {
  nothingRecalled,
  type RecallMoment,
  type Recollecting,
  type Recollection,
  recollect,
} from "../sight/recollection.ts";
import { requesters } from "./cause.ts";
import { awaitMedia, imagesFor } from "./images.ts";
import type { Mind } from "./mind.ts";
import { addAudience, addSources, addTaint, type Frame } from "./state.ts";
import { Thread } from "./thread.ts";
import { toolsToTidy } from "./tidying.ts";

/** The agent itself at work in a turn: each step shows it its world as it is then. */
export function agentFrame(mind: Mind, agent: Agent, turn: Turn): Frame {
  const { settings } = agent;
  const exchange = new Thread(settings);
  const entries: Frame["entries"] = [];
  const remembered = recallOnce(mind.forTools);
  return {
    subAgent: undefined,
    get choice() {
      return mind.choiceFor(agent, isTidying(turn) ? "read" : "think");
    },
    tools: isTidying(turn) ? toolsToTidy(mind.toolbox, agent) : undefined,
    delegates: undefined,
    todo: undefined,
    exchange,
    entries,
    callPrefix: `fc${turn.number}`,
    numbers: new Map(),
    calls: 0,
    async look(state, n, wakes) {
      const reminders = [
        isTidying(turn) ? tidyingReminder : settings.answer === "tool" ? onlyFunctionsSpeak : lastTextSpeaks,
        ...callReminders(settings),
        ...(state.wasReminded ? [nobodyHeardYou] : []),
      ];
      const view = () =>
        mind.view.see(agent, turn, {
          wakes,
          entries,
          reminders,
          base: exchange.base,
          known: state.dealtWith,
          recollect: (moment) =>
            remembered({ ...moment, requesters: requesters(wakes, agent.owner) }, exchange.base !== undefined),
        });
      let sight = await view();
      if (await awaitMedia(state, sight.media.pending)) sight = await view();
      addSources(state, sight.sources);
      addAudience(state, sight.audience);
      state.changes = sight.changes;
      addTaint(state, sight.taint);
      mind.compactor.consider(agent, turn, sight.activityBytes);
      if (sight.leaving) mind.summaries.consider(agent, turn, sight);
      const prompt = exchange.next(n, sight, await imagesFor(state, sight.media));
      const waiting = new Set(prompt.waiting?.filter((eventId) => !state.shownNews.has(eventId)));
      for (const eventId of sight.news) if (!waiting.has(eventId)) state.shownNews.add(eventId);
      const { seen, unread } = sight.seenWithout(waiting);
      if (unread !== undefined && !state.hasRead && !isTidying(turn)) {
        state.hasRead = waiting.size === 0;
        mind.onRead(agent, turn.roomId, unread, () => state.spoke);
      }
      return { prompt, seen, othersWait: waiting.size > 0, log: sight.log, audience: sight.audience };
    },
  };
}

/** Recalls once in a turn, and anew for another audience or log; steps that are appended to a render show no memories. */
function recallOnce(from: Recollecting) {
  let last: { readonly sight: string; readonly recollection: Promise<Recollection> } | undefined;
  return async (moment: RecallMoment, isAppended: boolean): Promise<Recollection> => {
    if (isAppended) return nothingRecalled;
    const { audience, ephemeris, events } = moment.seen;
    const sight = [...audience, events.length, ephemeris.length].join("\n");
    if (last?.sight !== sight) last = { sight, recollection: recollect(from, moment) };
    return last.recollection;
  };
}

/** Reminders of how to make calls, by the agent's flags; its sub-agents get them, too. */
export const callReminders = ({ agentFlags }: AgentSettings): string[] => [
  ...(agentFlags.includes("PreventFunctionCallsWithoutThoughts") ? [thinkBeforeCalling] : []),
  ...(agentFlags.includes("PreventParallelFunctionCalls") ? [oneCallAtATime] : []),
];
