import type { UserId } from "../../base/lib/ids.ts";
import { splitUserId } from "../../base/lib/matrix-id.ts";
import type { KnownName } from "../tables/surroundings.ts";

/** A question whose names are taken out: a name says who is meant, and would drown what is asked. */
export interface NeutralQuestion {
  /** Without the names, for the search by words. */
  readonly words: string;
  /** With "you" for every name, for the search by meaning. */
  readonly neutral: string;
  readonly named: readonly UserId[];
}

/** Shortest first name that is looked for by itself, in characters. */
const firstNameLeast = 3;
/** Words that may begin a display name, and name nobody. */
const common = new Set([
  "the",
  "and",
  "you",
  "not",
  "are",
  "who",
  "how",
  "why",
  "when",
  "what",
  "where",
  "room",
  "team",
]);

/**
 * Takes the names of known people out of a question. "I" and "my" name the person who asks.
 * @param by the person who asks; undefined for an agent's own question
 */
export function neutralise(text: string, people: readonly KnownName[], by?: UserId): NeutralQuestion {
  const owners = new Map<string, Set<UserId>>();
  for (const { userId, displayName } of people)
    for (const name of namesOf(userId, displayName)) owners.set(name, (owners.get(name) ?? new Set()).add(userId));
  const named = new Set<UserId>();
  const present = [...owners.keys()].filter((name) => text.toLowerCase().includes(name));
  const pattern = patternFor(present);
  const replace = (own: string, other: string): string =>
    pattern === undefined
      ? text
      : text.replace(pattern, (_, name: string, genitive: string | undefined) => {
          for (const userId of owners.get(name.toLowerCase()) ?? []) named.add(userId);
          return genitive ? own : other;
        });
  const neutral = replace("your", "you");
  const words = replace(" ", " ");
  if (by !== undefined && /\b(?:i|i['’]\w+|me|my|mine|myself)\b/i.test(text)) named.add(by);
  return { words, neutral, named: [...named] };
}

/** Names by which somebody may be meant, in small letters: display name, its first word, and localpart. */
function namesOf(userId: UserId, displayName: string | null): string[] {
  const whole = displayName?.trim().toLowerCase() ?? "";
  const [first = ""] = whole.split(/\s+/);
  const localpart = splitUserId(userId).localpart.toLowerCase();
  return [...new Set([whole, first, localpart])].filter(
    (name) => name.length >= firstNameLeast && !common.has(name) && /\p{L}/u.test(name),
  );
}

/** Matches the names as words, the longest first, and an `'s` behind one. */
function patternFor(names: readonly string[]): RegExp | undefined {
  if (names.length === 0) return undefined;
  const either = names
    .toSorted((one, other) => other.length - one.length)
    .map((name) => name.replace(/[.*+?^${}()|[\]\\/-]/g, "\\$&"))
    .join("|");
  return new RegExp(`(?<![\\p{L}\\p{N}_])@?(${either})(?::[\\w.:-]+)?(['’]s)?(?![\\p{L}\\p{N}_])`, "giu");
}
