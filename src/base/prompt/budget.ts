/**
 * Divides the characters of a render among its parts.
 *
 * System and user message together never exceed them. First comes the frame: every tag that is always there, with
 * nothing in it. The rest goes to four tiers, one after the other:
 *
 * 1. `system`: who the agent is. Its limit depends on nothing but the size of the context, so that the system message
 *    stays the same; it gives way only where new events would be left out.
 * 2. `news`: what the turn is about, and who is there. Whole wherever that fits, but for a quarter that `work` may need.
 * 3. `work`: what the agent does and looks at. As much as it needs of the first half of what is left.
 * 4. `past`: other rooms, and what happened before. It gets what no tier before it needs, so nothing above ever gives way
 *    to it. The log of the layout `cacheable` is the last of it: the rest has up to half of what both may take.
 *
 * Characters that `past` leaves go to `work`. Within a tier each part is guaranteed its share; characters that a part
 * does not need go to the first that needs more. A part that gets less than it wants says so in the render.
 */
const tiers = {
  system: { systemPrompt: 0.4, persona: 0.3, guides: 0.3 },
  news: { reminders: 0.2, newEvents: 0.45, postPrompt: 0.1, members: 0.1, admins: 0.05 },
  work: { turn: 0.4, status: 0.1, todos: 0.1, recalled: 0.1, windows: 0.2, scratchpad: 0.1 },
  past: { unread: 0, rooms: 0, history: 0.5, activity: 0.15, ephemeris: 0.2, otherRooms: 0.15 },
};

type Tier = keyof typeof tiers;
type PartName = { [Name in Tier]: keyof (typeof tiers)[Name] }[Tier];

/** Characters for each part beyond its least form. */
export type Allotment = Readonly<Record<PartName, number>>;

/** A render that is to be divided. */
export interface Budget {
  /** The most that the render may take. */
  readonly max: number;
  /** Characters of it that are left beside the frame. */
  readonly left: number;
  readonly wanted: Allotment;
  /** With so many characters for new events none of them is left out. */
  readonly newEventsLeast: number;
}

/** The least `charsMax` of an agent: the frame fits while server, agent and model have names of up to 64 characters. */
export const charsMin = 4_200;

/** Every part in its least form: the frame. */
export const nothing: Allotment = Object.fromEntries(
  Object.values(tiers).flatMap((shares) => Object.keys(shares).map((part) => [part, 0])),
) as Record<PartName, number>;

/** Part of the context that is kept free of the system message; of a small one more, so that a turn has room there. */
const reserveOf = (max: number): number => Math.max(0.2 * max, Math.min(5_000, 0.65 * max));

/** Part of what is left beside system message and people that a log may take before it is cut for good. */
const logShare = 0.95;
/** The most that a log takes of a context in which little else stands. */
const logMost = 0.85;

/** Characters that a part of the system message is sure to get, however long the others are; of more, it may be cut. */
export const sureChars = (part: keyof typeof tiers.system, max: number): number =>
  Math.floor(Math.max(0, max - reserveOf(max)) * tiers.system[part]);

/** Divides the characters among the tiers; `log`: those that a log could have of the last tier. */
const levels = ({ max, left, wanted, newEventsLeast }: Budget, log: number) => {
  const want = (tier: Tier): number =>
    Object.keys(tiers[tier]).reduce((sum, part) => sum + wanted[part as PartName], 0);
  const needed = Math.min(want("news") - wanted.newEvents + Math.min(wanted.newEvents, newEventsLeast), 0.8 * left);
  const system = Math.floor(Math.min(want("system"), Math.max(0, max - reserveOf(max)), left - needed));
  const rest = left - system;
  const guaranteed = Math.floor(Math.min(want("work"), rest / 4, rest - needed));
  const news = Math.min(want("news"), rest - guaranteed);
  const remaining = rest - news;
  const room = remaining - Math.min(want("work"), Math.max(guaranteed, Math.ceil(remaining / 2)));
  const past = Math.min(want("past"), room - log);
  return { given: { system, news, past, work: remaining - past - log }, rest, room, past: want("past") };
};

/** Divides what is left; no part gets more than it wants. `log`: characters that a log takes, at most its `logRoom`. */
export const divide = (budget: Budget, log = 0): Allotment => {
  const { given } = levels(budget, log);
  return {
    ...nothing,
    ...Object.assign(
      {},
      ...(Object.keys(tiers) as Tier[]).map((tier) => portion(given[tier], budget.wanted, tiers[tier])),
    ),
  };
};

/** The most that a log may take in this render; other parts of the past want at most half of what there is. */
export const logRoom = (budget: Budget): number => {
  const { room, past } = levels(budget, 0);
  return room - Math.min(past, Math.floor(room / 2));
};

/** The size beyond which a log is cut for good: new events, and the work of one turn, do not count against it. */
export const logLimit = (budget: Budget): number => {
  const wanted = { ...budget.wanted, newEvents: 0 };
  const people = Object.keys(tiers.news).reduce((sum, part) => sum + wanted[part as PartName], 0);
  const elsewhere = wanted.rooms + wanted.unread;
  const { rest } = levels({ ...budget, wanted, newEventsLeast: 0 }, 0);
  return Math.max(0, Math.floor(Math.min(budget.max * logMost, (rest - people - elsewhere) * logShare)));
};

const portion = (total: number, wanted: Allotment, shares: Readonly<Partial<Allotment>>): Partial<Allotment> => {
  const given: Partial<Record<PartName, number>> = {};
  const parts = Object.entries(shares) as [PartName, number][];
  let left = total;
  for (const [part, share] of parts) {
    const least = Math.min(wanted[part], Math.floor(total * share));
    given[part] = least;
    left -= least;
  }
  for (const [part] of parts) {
    const more = Math.min(wanted[part] - (given[part] ?? 0), left);
    given[part] = (given[part] ?? 0) + more;
    left -= more;
  }
  return given;
};
