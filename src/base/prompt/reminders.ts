/** For agents that speak by calling a function (`answer: tool`). */
export const onlyFunctionsSpeak =
  "People and other agents hear you only through function calls. Text that you write outside of a call is your own thinking: nobody in your rooms sees it. Use it to think before you act, and call SendMessage to say something.";

/** For agents whose text is their answer (`answer: text`). */
export const lastTextSpeaks =
  "The last text of this turn is sent to the room as your answer, exactly as you write it. Everything you write before it, beside function calls, stays your own thinking.";

/** For a turn that was asked something and is about to end in silence. */
export const nobodyHeardYou =
  "You were asked something in this turn, and nobody has heard an answer yet. Call SendMessage now; if you have decided not to answer, end the turn without a call.";

/** For agents with the flag `PreventFunctionCallsWithoutThoughts`. */
export const thinkBeforeCalling =
  "Write down what you think before each function call, in the same reply. A call that comes without a thought is not carried out.";

/** For agents with the flag `PreventParallelFunctionCalls`. */
export const oneCallAtATime =
  "Call one function at a time, and look at its result before the next call. Further calls in the same reply are not carried out.";

const standing: ReadonlySet<string> = new Set([onlyFunctionsSpeak, lastTextSpeaks, thinkBeforeCalling, oneCallAtATime]);

/** True of what each step of an agent is reminded of: it need not stand behind what changes. */
export const isStanding = (reminder: string): boolean => standing.has(reminder);
