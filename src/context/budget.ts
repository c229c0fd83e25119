/**
 * How `World.charsMax` is divided.
 *
 * System and user message together never exceed it. First comes the frame: every tag that is always there, with
 * nothing in it. What is left is divided among the parts below, which stand in the order of their priority. Each part
 * is guaranteed its share. What a part does not need of it goes to the first that needs more, then to the next.
 * A part that gets less than it wants says so in the render.
 */
const shares = {
  reminders: 0.05,
  postPrompt: 0.05,
  todos: 0.03,
  turn: 0.15,
  newEvents: 0.15,
  windows: 0.15,
  systemPrompt: 0.1,
  persona: 0.08,
  guides: 0.07,
  admins: 0.01,
  members: 0.02,
  history: 0.08,
  ephemeris: 0.02,
  otherRooms: 0.02,
  scratchpad: 0.02,
};

type PartName = keyof typeof shares;
const parts = Object.keys(shares) as PartName[];

/** Characters for each part beyond its least form. */
export type Allotment = Readonly<Record<PartName, number>>;

/** The least `charsMax` of an agent: the frame fits while server, agent and model have names of up to 64 characters. */
export const charsMin = 4_000;

/** Divides `total` characters among parts that want `wanted`; no part gets more than it wants. */
export const divide = (total: number, wanted: Allotment): Allotment => {
  const given = { ...shares };
  let left = total;
  for (const part of parts) {
    given[part] = Math.min(wanted[part], Math.floor(total * shares[part]));
    left -= given[part];
  }
  for (const part of parts) {
    const more = Math.min(wanted[part] - given[part], left);
    given[part] += more;
    left -= more;
  }
  return given;
};

/** Every part in its least form: the frame. */
export const nothing: Allotment = divide(0, shares);
