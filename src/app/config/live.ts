import { digest } from "../../base/lib/ids.ts";
import { isObject } from "../../base/lib/json.ts";
import { type Config, isSecret, loadConfig } from "./config.ts";

/** A value of the configuration that is another than before. */
interface Difference {
  /** Such as `model.name`. */
  readonly path: string;
  /** JSON; of secrets nothing is shown. */
  readonly before: string;
  readonly after: string;
}

/** Sections that can be changed while the bridge runs; the rest is read at the next start. */
export const liveSections = [
  "permissions",
  "controlRoom",
  "model",
  "models",
  "budgets",
  "prices",
  "limits",
  "logLevel",
];
/** Agents are made from the configuration and not changed by it; the others are not written in the file. */
const passed = ["agents", "file", "warnings"];

/** The configuration as it is now: read at the start, and again when an admin says so. */
export class LiveConfig {
  readonly #started: Config;
  #current: Config;

  constructor(config: Config) {
    this.#started = config;
    this.#current = config;
  }

  get current(): Config {
    return this.#current;
  }

  /** By which other processes see whether they have the same in force; it tells nothing else. */
  get fingerprint(): readonly string[] {
    const values = [...valuesOf(this.#current)].sort(([one], [other]) => (one < other ? -1 : 1));
    return liveSections.map((section) => {
      const own = values.filter(([path]) => sectionOf(path) === section);
      return `${section} ${digest(...own.flat())}`;
    });
  }

  /** The sections that are not in force here as they are where the fingerprint comes from. */
  differsFrom(fingerprint: readonly string[]): string[] {
    return this.fingerprint.filter((own) => !fingerprint.includes(own)).map((own) => own.split(" ")[0] ?? "");
  }

  /**
   * Reads the file again.
   * @returns what is different now, and which sections are only read at a start and are not as they were at this one
   * @throws UserError that lists every mistake; then the last good configuration stays
   */
  async reload(): Promise<{ readonly changed: readonly Difference[]; readonly restart: readonly string[] }> {
    const next = await loadConfig(this.#current.file);
    const changed = differences(this.#current, next).filter(({ path }) => liveSections.includes(sectionOf(path)));
    const fixed = differences(this.#started, next).map(({ path }) => sectionOf(path));
    this.#current = next;
    return { changed, restart: [...new Set(fixed)].filter((section) => !liveSections.includes(section)) };
  }
}

const sectionOf = (path: string): string => path.split(".")[0] ?? "";

const differences = (before: Config, after: Config): Difference[] => {
  const [old, fresh] = [valuesOf(before), valuesOf(after)];
  return [...new Set([...old.keys(), ...fresh.keys()])]
    .filter((path) => !passed.includes(sectionOf(path)) && old.get(path) !== fresh.get(path))
    .map((path) => ({
      path,
      before: showValue(path, old.get(path)),
      after: showValue(path, fresh.get(path)),
    }));
};

const showValue = (path: string, value: string | undefined): string =>
  value === undefined ? "nothing" : isSecret(path) ? "a value that is not shown" : value;

/** Every value by its path, as JSON. */
const valuesOf = (value: unknown, path = ""): Map<string, string> => {
  if (!isObject(value)) return new Map(value === undefined ? [] : [[path, JSON.stringify(value)]]);
  return new Map(
    Object.entries(value).flatMap(([key, inner]) => [...valuesOf(inner, path === "" ? key : `${path}.${key}`)]),
  );
};
