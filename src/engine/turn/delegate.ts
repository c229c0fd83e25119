import { ModelError } from "../../adapters/model/failure.ts";
import { UserError } from "../../base/lib/errors.ts";
import { HOME } from "../../base/lib/ids.ts";
import { errandPrompt } from "../../base/prompt/subagent.ts";
import { delegateTool, type SubAgent } from "../../domain/agents/sub-agent.ts";
import type { TakenWake } from "../../domain/tables/turns.ts";
import type { ToolOutcome } from "../operations/tool.ts";
import { act } from "./act.ts";
import { callReminders } from "./agent-frame.ts";
import { requesters } from "./cause.ts";
import { Exchange } from "./exchange.ts";
import { addTaint, type Delegation, type Frame, type TurnState } from "./state.ts";
import { think } from "./think.ts";

/** Limit of sub-agents that work for each other in a row. */
const depthMost = 3;
/** Steps of one sub-agent. */
const stepsMost = 10;
/** Once its journal is as long, nothing more is delegated in a turn: sub-agents multiply what its own limit allows. */
const journalMost = 200;

/**
 * Has a sub-agent do something within the turn of its agent: with its own prompt, tools and steps, and with the turn's
 * journal, rights, walls and budgets. What happens after a death of the process is what happens with the turn.
 */
export async function delegate(
  state: TurnState,
  delegation: Delegation,
  wakes: readonly TakenWake[],
): Promise<ToolOutcome> {
  const outer = state.frame;
  const { name } = delegation;
  // Another process that goes on with the turn goes on with this sub-agent, whatever its file says by then.
  const step = state.journal.take<SubAgent>(`sub-agent ${name}`);
  const subAgent = step.done ?? (await findSubAgent(state, name));
  if (!step.done) state.journal.hold({ n: step.n, name: `sub-agent ${name}`, result: subAgent });
  state.frame = await frameOf(state, subAgent, delegation, wakes);
  try {
    return { result: await work(state, wakes) };
  } finally {
    state.frame = outer;
  }
}

async function findSubAgent({ mind, agent, frame, journal }: TurnState, name: string): Promise<SubAgent> {
  const instead = "Do it yourself, or say what is left.";
  if (depthOf(frame) === depthMost) {
    throw new UserError(`at most ${depthMost} sub-agents work for each other. ${instead}`);
  }
  if (journal.length > journalMost) {
    throw new UserError(`this turn has had ${journalMost} steps, and delegates nothing more. ${instead}`);
  }
  return mind.subAgents.byName(agent, name, frame.delegates);
}

const depthOf = ({ subAgent }: Frame): number => subAgent?.split("/").length ?? 0;

/** Returns the sub-agent's last text, or why it has none. */
async function work(state: TurnState, wakes: readonly TakenWake[]): Promise<string> {
  let said = "";
  let why = `It came to its limit of ${stepsMost} steps before it was done.`;
  try {
    for (let step = 1; step <= stepsMost; step++) {
      state.signal.throwIfAborted();
      const { thinking } = await think(state, wakes);
      said = thinking.text || said;
      if (thinking.ends || (await act(state, thinking, wakes))) return said || "It ended without a word.";
    }
  } catch (error) {
    if (error instanceof ModelError) {
      const { agent, frame, mind } = state;
      const what = `The model ${frame.choice.model} of the sub-agent ${frame.subAgent} of ${agent.userId} is ${error.kind}`;
      const hour = mind.clock.now().toISOString().slice(0, 13);
      mind.tellOperators(`${what}: ${error.message}`, `sub-agent ${frame.subAgent} ${error.kind} ${hour}`);
      why = `It broke off: its model does not answer, it is ${error.kind}.`;
    } else if (error instanceof UserError) why = `It broke off: ${error.message}`;
    else throw error;
  }
  return said === "" ? why : `${why}\n\nThe last that it wrote:\n\n${said}`;
}

async function frameOf(
  state: TurnState,
  subAgent: SubAgent,
  { call, id, todo }: Delegation,
  wakes: readonly TakenWake[],
): Promise<Frame> {
  const { mind, agent, turn, frame: outer } = state;
  const { settings, userId, owner, name } = agent;
  const choice = mind.choiceFor(agent);
  const model = subAgent.model ?? choice.model;
  const exchange = new Exchange(settings.approxContextCharsMax);
  const entries: Frame["entries"] = [];
  const delegates = subAgent.delegates;
  const [{ roomName, people, taint }, others, todos] = await Promise.all([
    mind.view.surroundings(agent, turn.roomId, requesters(wakes, owner)),
    delegates.length > 0 ? mind.subAgents.now(agent) : [],
    todo === undefined ? [] : mind.todos.list({ agent: name, owner, here: turn.roomId }),
  ]);
  addTaint(state, taint);
  return {
    subAgent: outer.subAgent === undefined ? subAgent.name : `${outer.subAgent}/${subAgent.name}`,
    choice: { ...choice, model },
    tools: delegates.length > 0 ? [...subAgent.tools, delegateTool] : subAgent.tools,
    delegates,
    todo,
    exchange,
    entries,
    callPrefix: id,
    numbers: new Map(),
    calls: 0,
    async look(_state, n) {
      const goesOn = exchange.goOn();
      if (goesOn) return { prompt: goesOn };
      const { system, user } = errandPrompt({
        serverName: mind.view.serverName,
        now: mind.clock.now(),
        timeZone: settings.timeZone,
        agent: { userId },
        name: subAgent.name,
        prompt: subAgent.prompt,
        model,
        delegates: others.filter((one) => delegates.includes(one.name)),
        room: turn.roomId === HOME ? undefined : { roomId: turn.roomId, name: roomName },
        people,
        todo: todos.find(({ number }) => number === todo),
        request: call,
        entries,
        reminders: callReminders(settings),
        charsMax: settings.approxContextCharsMax,
      });
      const messages = [
        { role: "system", content: system },
        { role: "user", content: user, borders: [], images: [] },
      ] as const;
      // The errand comes from what woke the turn: a redaction of that concerns what the sub-agent was shown.
      const eventIds = wakes.flatMap(({ eventId }) => eventId ?? []);
      return { prompt: exchange.begin(n, messages, eventIds) };
    },
  };
}
