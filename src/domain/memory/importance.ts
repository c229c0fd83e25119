import type { Memory } from "../tables/interactions.ts";

/** Facts by which importance is judged. */
type Judged = Pick<Memory, "kind" | "tool" | "text">;

interface Rule {
  /** Added to the importance of what the rule applies to. */
  readonly weight: number;
  readonly applies: (judged: Judged) => boolean;
}

const base = 0.3;
const timeBase = 0.4;
/** Importance of everything that an agent does, whatever the rules say. */
const actionImportance = 0.7;
/** Name of the sensor that tells agents of the time. */
const timeSensor = "time";

/** Length of a thought that is worth more, in characters. */
const longThought = 200;
/** Length below which a greeting says nothing else. */
const shortGreeting = 50;

const says =
  (pattern: RegExp) =>
  ({ text }: Judged): boolean =>
    pattern.test(text);

/** Rules by their names: each applies or does not, and all that apply are added up. */
const rules: Readonly<Record<string, Rule>> = {
  "to be remembered, an introduction, a goal": {
    weight: 0.4,
    applies: says(
      /\b(?:remember|(?:don['’]?t|do not|never) forget|keep in mind|(?:take|make a) note|my name is|(?:you can |please )?call me|(?:my|our|the) (?:\w+ )?(?:goal|aim|objective) (?:is|was|will)|(?:i|we) (?:want|aim|intend|plan) to)\b/i,
    ),
  },
  "a question or a request": {
    weight: 0.15,
    applies: says(/\?(?:\s|$|["'”’)])|^(?:please|(?:can|could|would|will) you)\b|\bplease\b/i),
  },
  "thinking about time": {
    weight: 0.15,
    applies: says(
      /\b(?:elapsed|(?:have|has|had) been waiting|wait(?:ing)? (?:for|until)|follow(?:ing)?[ -]?up|(?:minutes?|hours?|days?|weeks?|months?) (?:ago|later|have passed|has passed)|since (?:then|the last)|overdue)\b/i,
    ),
  },
  "a long thought": {
    weight: 0.1,
    applies: ({ kind, text }) => kind === "thought" && text.length > longThought,
  },
  "a short greeting or acknowledgement": {
    weight: -0.2,
    applies: ({ text }) =>
      text.length < shortGreeting &&
      /^\W*(?:hi|hello|hey|hallo|good (?:morning|afternoon|evening|night)|bye|goodbye|see you|thanks|thank you|thx|ok|okay|yes|yep|no|nope|sure|great|cool|nice|fine|got it|understood|done|welcome|you['’]re welcome)\b(?:[^\p{L}?]*\p{L}+){0,3}[^\p{L}?]*$/iu.test(
        text,
      ),
  },
};

/** Importance from 0 to 1: it ranks memories, and never decides if something is kept. */
export function importanceOf(judged: Judged): number {
  if (judged.kind === "action") return actionImportance;
  const begins = judged.tool === timeSensor ? timeBase : base;
  const sum = Object.values(rules).reduce(
    (total, { weight, applies }) => total + (applies(judged) ? weight : 0),
    begins,
  );
  // Sums of such fractions end in rounding errors.
  return Math.round(Math.min(1, Math.max(0, sum)) * 100) / 100;
}
