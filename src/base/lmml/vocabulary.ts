/**
 * The elements of LMML and the attributes without which each may not stand. Others may be said once for many: on the
 * element around them, or where they change. The vocabulary is open: other elements
 * render and parse as well, but only these names keep `raw` content from being written as it is.
 */
const required: ReadonlyMap<string, readonly string[]> = new Map(
  Object.entries({
    chatInterface: ["currentDatetime"],
    agentParameters: ["wakeUpTimerSeconds"],
    agentGuide: ["title"],
    systemReminder: [],
    chatSystem: ["systemId", "loggedInAs"],
    systemAdmin: [],
    log: [],
    room: [],
    roomMember: ["userId"],
    roomFooter: [],
    newEvents: [],
    message: [],
    roomEvent: [],
    systemEvent: [],
    timestamp: ["value", "wakeReason", "turnId"],
    thought: [],
    functionCall: ["id", "function"],
    parameter: ["name"],
    functionResult: ["id"],
    result: [],
    window: ["windowId", "srcType", "src", "contentType"],
    content: [],
    queryResult: ["query"],
    searchResult: ["path", "score"],
    match: ["line"],
    ragResults: [],
    ragResult: ["score"],
    memory: ["kind"],
    knowledge: ["source"],
    todo: [],
    workingFile: ["name"],
    summary: [],
  }),
);

const booleans: ReadonlySet<string> = new Set([
  "raw",
  "maximized",
  "minimized",
  "pinned",
  "system",
  "sent",
  "willAutoCloseAfterTurn",
  "autorefresh",
  "refreshable",
  "admin",
  "you",
  "directMessage",
  "truncated",
  "edited",
  "encrypted",
  "formattedDiffers",
  "closed",
  "tainted",
  "done",
  "removed",
  "outdated",
]);

/** Limit of elements inside each other: rendering deeper is a bug, deeper text is refused. */
export const maxDepth = 100;

/** A name of an element or attribute, as the source of a regular expression. */
export const namePattern = "[A-Za-z][\\w.-]{0,63}";

/** The XML parser below refuses elements of these names. */
const reserved: ReadonlySet<string> = new Set(["constructor", "prototype"]);
const nameOnly = new RegExp(`^${namePattern}$`);

export const elementNames: readonly string[] = [...required.keys()];
export const isElementName = (name: string): boolean =>
  required.has(name) || (nameOnly.test(name) && !reserved.has(name));
export const isAttributeName = (name: string): boolean => nameOnly.test(name);
export const requiredAttributes = (element: string): readonly string[] => required.get(element) ?? [];

/** Attributes that are present or absent and never have a value, whatever element they stand on. */
export const isBooleanAttribute = (name: string): boolean => booleans.has(name);
