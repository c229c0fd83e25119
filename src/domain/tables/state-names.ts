/** Files in which an agent keeps the state of one conversation. */
export const workingNames = ["NOW.md", "LOG.md", "facts.json"] as const;
export type WorkingName = (typeof workingNames)[number];

/** Comes into the name of a file that was put aside: `LOG.7.md`, `LOG.7-1.md`; see `putAside`. */
const asideMark = "[.][0-9]+(-[0-9]+)?";

/** Pattern of the names of such files, as they are and put aside; it means the same here and in SQL. */
const stateNames = workingNames.map((name) => name.replace(".", `(${asideMark})?[.]`)).join("|");

/** Pattern of the ends of their paths. */
export const statePaths = `/memory/(${stateNames})$`;

/** The path, or the one from which it was put aside. */
export const withoutAside = (path: string): string => path.replace(new RegExp(`${asideMark}(?=[.][a-z]+$)`), "");
