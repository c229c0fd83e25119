/** By which programs know a file that shows what an agent was shown in a turn: it is kept nowhere else. */
export const shownTurnMark = { "org.clevernet.shown_turn": true };
export const isShownTurn = (content: Readonly<Record<string, unknown>>): boolean =>
  "org.clevernet.shown_turn" in content;
