import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { describe, expect, it } from "vitest";

/**
 * The architecture: each row is a folder of src, with the folders, packages and Node modules that its files may import.
 * Rings from the inside out; imports point to rings further in, never to a neighbour in the same ring. `type X` allows
 * types of a folder, and nothing that runs.
 */
const rings: readonly Readonly<Record<string, string>>[] = [
  // Pure: no I/O.
  { lib: "pino yaml zod node:async_hooks node:crypto node:timers/promises" },
  { lmml: "lib fast-xml-parser" },
  { context: "lib lmml lru-cache" },
  // Doors: one outside system each.
  {
    database:
      "lib type:context postgres @electric-sql/pglite lru-cache zod node:fs node:fs/promises node:module node:path node:stream node:stream/promises node:v8 node:worker_threads node:zlib",
    matrix:
      "lib matrix-appservice-bridge express markdown-it sanitize-html yaml zod node:crypto node:fs/promises node:http node:net node:path",
    media: "lib sharp",
    model: "lib openai zod",
    // Code that is not to be trusted, in an interpreter.
    compute: "lib luxon quickjs-wasi node:fs node:url node:worker_threads",
  },
  // The mind: files, then how an agent works, then what brings events to it.
  { vfs: "lib lmml database file-type mime-types re2js node:timers/promises" },
  { agent: "lib lmml context database matrix media model type:compute vfs cron-parser lru-cache luxon node-cron zod" },
  {
    routing: "lib lmml context database matrix media vfs agent",
    // Edges: what agents do, what they notice, what people see.
    commands: "lib lmml context type:database matrix vfs agent zod",
    tools: "lib lmml context type:database matrix media vfs agent zod",
    sensors: "lib lmml context type:database matrix agent zod",
    rooms: "lib lmml context type:database matrix vfs agent zod",
    demo: "lib lmml context matrix execa yaml zod node:events node:fs node:fs/promises node:http node:net node:os node:path node:stream/consumers",
  },
  // main.ts, bridge.ts, wiring.ts, config.ts, init.ts: the wiring, and what the operator gives to it.
  {
    src: "lib lmml context database matrix model compute vfs agent routing commands tools sensors rooms demo commander prom-client zod node:fs node:fs/promises node:module node:os node:path node:readline/promises node:util",
  },
];

const table = Object.assign({}, ...rings) as Record<string, string>;
const project = join(import.meta.dirname, "..");
const src = join(project, "src");

const files = readdirSync(src, { recursive: true, withFileTypes: true })
  .filter((entry) => entry.isFile() && /(?<!\.d)\.ts$/.test(entry.name))
  .map((entry) => {
    const path = join(entry.parentPath, entry.name);
    return {
      path,
      name: relative(src, path),
      folder: relative(src, dirname(path)) || "src",
      text: readFileSync(path, "utf8"),
    };
  });

/** What a file imports: a folder of src, a package or a Node module; with `type:` before it where nothing of it runs. */
const importsOf = ({ path, folder, text }: (typeof files)[number]): string[] => {
  const clauses = text.matchAll(/^(?:import|export)\s+(type\s)?(?:[\w$*{},\s]+\sfrom\s+)?"([^"]+)"/gm);
  const calls = text.matchAll(/\bimport\(()\s*"([^"]+)"/g);
  return [...clauses, ...calls].flatMap(([, type, from = ""]) => {
    const what = from.startsWith(".")
      ? relative(src, dirname(join(dirname(path), from))) || "src"
      : from.startsWith("node:")
        ? from
        : from.split("/", from.startsWith("@") ? 2 : 1).join("/");
    return what === folder ? [] : [`${type ? "type:" : ""}${what}`];
  });
};

/** `file: …` for each file in which the pattern occurs. */
const found = (pattern: RegExp, among = files): string[] =>
  among.flatMap(({ name, text }) => text.match(pattern)?.map((match) => `${name}: ${match}`) ?? []);

describe("the architecture", () => {
  it.each(Object.entries(table))("%s imports only %s", (folder, allowed) => {
    const may = allowed.split(" ").flatMap((what) => (what.startsWith("type:") ? [what] : [what, `type:${what}`]));
    const others = files
      .filter((file) => file.folder === folder)
      .flatMap((file) => importsOf(file).map((what) => ({ file: file.name, what })))
      .filter(({ what }) => !may.includes(what))
      .map(({ file, what }) => `${file} imports ${what}`);
    expect(others).toEqual([]);
  });

  it("has imports that point inwards only", () => {
    const ringOf = (folder: string): number => rings.findIndex((ring) => folder in ring);
    const outwards = Object.entries(table).flatMap(([folder, allowed]) =>
      allowed
        .split(" ")
        .map((what) => what.replace("type:", ""))
        .filter((what) => what in table && ringOf(what) >= ringOf(folder))
        .map((what) => `${folder} may import ${what}`),
    );
    expect(outwards).toEqual([]);
  });

  it("knows every folder of src, and they are one level deep", () => {
    expect(files.filter(({ folder }) => !(folder in table)).map(({ name }) => name)).toEqual([]);
  });

  it("has no import that this test cannot read, but for the commands, tools and sensors that load.ts finds", () => {
    const readable = files.filter(({ name }) => name !== "load.ts");
    expect(found(/\bimport\((?!\s*")|\brequire\(|from '/g, readable)).toEqual([]);
  });

  it("reads the environment in config.ts alone", () => {
    const others = files.filter(({ name }) => name !== "config.ts");
    expect(found(/\bprocess\s*(?:\.\s*|\[\s*["'])env\b|\bloadEnvFile\b/g, others)).toEqual([]);
  });

  it("has no transaction that stays open between statements", () => {
    expect(found(/\bsql\.(?:begin|beginDistributed|reserve)\b|`\s*(?:begin|start transaction)\b/gi)).toEqual([]);
  });

  it("has files of 300 lines at most", () => {
    const long = files.map(({ name, text }) => ({ name, lines: text.trimEnd().split("\n").length }));
    expect(long.filter(({ lines }) => lines > 300)).toEqual([]);
  });

  it("has migrations that are numbered without gaps", () => {
    const migrations = readdirSync(join(project, "migrations")).sort();
    expect(migrations.map((name) => /^(\d{4})-[a-z-]+\.sql$/.exec(name)?.[1])).toEqual(
      migrations.map((_, index) => String(index + 1).padStart(4, "0")),
    );
  });
});
