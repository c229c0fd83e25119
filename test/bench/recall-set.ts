import { readFileSync } from "node:fs";

/** Something that was said. */
interface Said {
  readonly by: string;
  readonly text: string;
}

/** A question, and the places of what answers it among all that was said. */
interface Asked {
  readonly question: string;
  readonly answers: readonly number[];
}

export interface RecallSet {
  readonly name: string;
  readonly said: readonly Said[];
  readonly asked: readonly Asked[];
}

const people = "Ada Ben Cleo Dan Eva Finn Gwen Hugo Ida Jon Kim Leo Mia Nils Olga Paul Rosa Sam Tara Uwe".split(" ");

/** Statements of people about themselves, and how others ask for them: `%` is a value, `#` a person. */
const subjects: readonly (readonly [said: string, asked: string, values: string])[] = [
  ["We painted the bedroom %, finally.", "What colour are the walls where # sleeps?", "green yellow blue white"],
  ["I never miss a match of the % team.", "Which sport does # follow?", "hockey handball rugby volleyball"],
  ["For lunch I took the % again.", "What did # eat at noon?", "lasagna curry dumplings salad"],
  ["My son wants to become a %.", "What does the child of # dream of being?", "pilot baker vet sailor"],
  ["The train to % was two hours late.", "Where did # travel by rail?", "Vienna Lisbon Oslo Milan"],
  ["I put the spare key under the %.", "Where does # hide the other key?", "flowerpot doormat bench statue"],
  ["The budget for the % is used up.", "Which project of # has no money left?", "website museum garden concert"],
  ["We rewrote the service in %.", "Which programming language did # choose?", "Rust Go Kotlin Elixir"],
  ["I take the tablets because of my %.", "Why is # on medication?", "asthma migraine thyroid knee"],
  ["Our next holiday goes to the %.", "Where will # go on vacation?", "mountains coast desert islands"],
];

const filler = [
  "See you tomorrow then.",
  "I will look at the % later today.",
  "Did anybody see the % on television?",
  "That meeting about the % took far too long.",
  "Thanks, that helps a lot with the %.",
  "The weather is awful, and the % too.",
  "Let us talk about the % next week.",
  "No idea, ask the people with the %.",
];
const things =
  "printer garden ticket report kitchen bridge contract camera plan room team train lunch museum water phone market letter music window".split(
    " ",
  );

/** Numbers below `below` that follow from the seed. */
function dice(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

const saidMost = 5_000;
const askedOfScript = 160;

/** Our own: 160 questions of a script and 40 that were written by hand, none of which repeats the words of its answer. */
export function ownSet(seed = 17): RecallSet {
  const roll = dice(seed);
  const pick = <Value>(values: readonly Value[]): Value => values[roll(values.length)] as Value;
  const pairs = people.flatMap((person) => subjects.map((subject) => ({ person, subject })));
  while (pairs.length > askedOfScript) pairs.splice(roll(pairs.length), 1);
  const written = JSON.parse(readFileSync(new URL("./recall-hard.json", import.meta.url), "utf8")) as string[][];
  const facts = [
    ...pairs.map(({ person, subject: [said, asked, values] }) => ({
      by: person,
      text: said.replace("%", pick(values.split(" "))),
      question: asked.replace("#", person),
    })),
    ...written.map(([by = "", text = "", question = ""]) => ({ by, text, question })),
  ];
  const said: Said[] = Array.from({ length: saidMost }, () => ({
    by: pick(people),
    text: pick(filler).replace("%", pick(things)),
  }));
  const taken = new Set<number>();
  const asked = facts.map(({ by, text, question }) => {
    let place = roll(saidMost);
    while (taken.has(place)) place = roll(saidMost);
    taken.add(place);
    said[place] = { by, text };
    return { question, answers: [place] };
  });
  return { name: "own", said, asked };
}

interface LocomoTurn {
  readonly speaker: string;
  readonly dia_id: string;
  readonly text: string;
}
interface Locomo {
  readonly conversation: Readonly<Record<string, unknown>>;
  readonly qa: readonly { readonly question: string; readonly evidence?: readonly string[] }[];
}
interface LongMemEval {
  readonly question: string;
  readonly haystack_sessions: readonly (readonly {
    readonly role: string;
    readonly content: string;
    readonly has_answer?: boolean;
  }[])[];
}

/** Reads a file of LoCoMo or of LongMemEval: one set for each conversation. */
export function readSets(file: string): RecallSet[] {
  const entries = JSON.parse(readFileSync(file, "utf8")) as (Locomo | LongMemEval)[];
  return entries.map((entry) => ("conversation" in entry ? locomo(entry) : longMemEval(entry)));
}

function locomo({ conversation, qa }: Locomo): RecallSet {
  const sessions = Object.keys(conversation)
    .filter((key) => /^session_\d+$/.test(key))
    .sort((one, other) => Number(one.slice(8)) - Number(other.slice(8)));
  const turns = sessions.flatMap((key) => conversation[key] as LocomoTurn[]);
  const places = new Map(turns.map(({ dia_id: id }, place) => [id, place]));
  const asked = qa.map(({ question, evidence = [] }) => ({
    question,
    answers: evidence.flatMap((ids) => ids.split(/[;,\s]+/)).flatMap((id) => places.get(id) ?? []),
  }));
  return {
    name: "LoCoMo",
    said: turns.map(({ speaker, text }) => ({ by: speaker, text })),
    asked: asked.filter(({ answers }) => answers.length > 0),
  };
}

function longMemEval({ question, haystack_sessions: sessions }: LongMemEval): RecallSet {
  const turns = sessions.flat();
  const answers = turns.flatMap(({ has_answer: isAnswer }, place) => (isAnswer ? [place] : []));
  return {
    name: "LongMemEval",
    said: turns.map(({ role, content }) => ({ by: role, text: content })),
    asked: answers.length > 0 ? [{ question, answers }] : [],
  };
}
