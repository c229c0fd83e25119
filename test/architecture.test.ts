import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { describe, expect, it } from "vitest";
import { parseAst } from "vitest/node";

/**
 * The architecture. `src` has six rings, each a folder. A ring holds folders one level deep, and each row below is one
 * of them, with the folders, packages and Node modules that its files may import. `type X` allows types of a folder,
 * and nothing that runs. Imports go to earlier rings; inside a ring, to earlier rows. The adapters do not know each
 * other, and neither do the edges.
 */
const rings: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  base: {
    lib: "ipaddr.js pino yaml zod node:async_hooks node:crypto type:node:dns node:net node:timers/promises type:node:worker_threads",
    lmml: "fast-xml-parser",
    prompt: "lib lmml lru-cache",
  },
  adapters: {
    database:
      "lib @electric-sql/pglite @electric-sql/pglite-pgvector postgres zod node:fs node:fs/promises node:module node:path node:stream node:stream/promises node:v8 node:worker_threads node:zlib",
    matrix:
      "lib @vector-im/matrix-bot-sdk express markdown-it matrix-appservice-bridge sanitize-html yaml zod node:crypto node:fs/promises node:http node:net node:path node:stream/consumers",
    model: "lib openai zod",
    embedding:
      "lib @huggingface/tokenizers onnxruntime-node zod node:crypto node:fs node:fs/promises node:path node:stream node:stream/promises node:worker_threads",
    images: "sharp",
    mcp: "lib lmml @modelcontextprotocol/client",
    web: "lib defuddle execa fast-xml-parser linkedom mdream undici unpdf zod node:dns node:fs node:path node:stream/consumers node:url node:worker_threads",
    sandbox:
      "lib execa luxon quickjs-wasi zod node:dns node:fs node:fs/promises node:http node:net node:os node:path node:stream node:url node:worker_threads",
  },
  domain: {
    tables: "lib type:prompt database type:mcp lru-cache pgvector",
    sandboxes: "lib sandbox tables node:fs node:net node:os node:path node:stream",
    files: "lib lmml type:database sandbox tables file-type mime-types re2js node:timers/promises",
    rights: "lib type:prompt type:database matrix type:tables",
    agents: "lib type:database type:matrix model tables files zod node:fs/promises",
    budget: "lib lmml prompt model type:tables type:agents",
    speech: "lib lmml prompt matrix type:tables type:agents",
    servers: "lib mcp sandbox tables type:agents",
    memory: "lib type:lmml database embedding matrix tables files rights type:agents zod",
    desk: "lib lmml prompt type:database images matrix type:web tables files agents budget lru-cache",
    plans: "lib lmml prompt tables rights speech cron-parser luxon node-cron zod",
    crypto: "lib type:database matrix tables @matrix-org/matrix-sdk-crypto-wasm node:crypto",
  },
  engine: {
    operations:
      "lib lmml prompt type:database images matrix type:model type:sandbox mcp type:sandboxes type:tables files rights agents servers type:memory type:budget speech desk type:plans lru-cache zod",
    sight: "lib lmml prompt type:database matrix tables files rights agents memory desk operations lru-cache",
    turn: "lib lmml prompt type:database type:matrix model images tables files rights agents memory budget speech operations sight lru-cache",
    control:
      "lib lmml prompt matrix type:sandboxes type:tables type:files rights agents type:servers type:memory speech operations turn zod",
  },
  edges: {
    tools:
      "lib lmml prompt matrix images sandboxes type:tables files rights agents memory speech desk plans operations zod",
    sensors: "lib lmml prompt matrix agents type:operations",
    commands:
      "lib lmml prompt matrix sandboxes type:tables rights agents servers type:memory budget speech operations control zod",
    routing:
      "lib prompt database matrix images tables files rights type:agents memory speech crypto operations sight type:turn",
    delivery: "lib prompt type:database matrix type:tables type:rights type:agents speech type:crypto control",
    demo: "lib lmml prompt matrix execa yaml zod node:events node:fs node:fs/promises node:http node:net node:os node:path node:stream/consumers",
  },
  app: {
    config:
      "lib embedding sandbox web rights agents type:servers type:memory budget zod node:fs/promises node:os node:path",
    operator:
      "lib database matrix model embedding mcp sandbox web tables rights agents type:servers type:memory crypto config node:fs/promises node:path node:util",
    start:
      "lib database matrix model sandbox sandboxes web tables files rights agents servers memory budget speech desk plans crypto operations sight turn control routing delivery config operator prom-client node:fs/promises",
    "main.ts": "lib matrix demo config operator start commander node:module node:path node:readline/promises",
  },
};

/** Name of something that is true or false: a verb that asks or states, at its beginning or in it. */
const statement =
  /^(?:is|has|was|may)(?![a-z])|^(?:asks|crosses|drops|ends|erases|follows|goes|includes|lacks|looks|matches|needs|opens|quotes|runs|speaks|spoke|takes|uses|vacuums)(?![a-z])|(?:Differs|Speaks|Wait)$/;

/** Words of formats, by the files that declare them: Matrix, IndexedDB, flags of the command line, JSON that is kept. */
const formatWords: Readonly<Record<string, string>> = {
  "src/adapters/matrix/registration.ts": "exclusive rate_limited receive_ephemeral",
  "src/domain/crypto/idb-key.ts": "lowerOpen upperOpen",
  "src/domain/files/move.ts": "folder",
  "src/domain/tables/memory-export.ts": "shareable tainted",
  "src/engine/turn/act.ts": "unsaid",
  "src/engine/turn/think.ts": "said unsaid",
  "src/main.ts": "json rotateTokens test",
  "test/e2e/twins.test.ts": "homeserver",
  "test/support/scripted-model.ts": "final",
};

const alone = ["adapters", "edges"];
const project = join(import.meta.dirname, "..");
const src = join(project, "src");

const rows = Object.entries(rings).flatMap(([ring, folders]) =>
  Object.entries(folders).map(([folder, allowed]) => ({ ring, folder, allowed: allowed.split(" ") })),
);

const files = readdirSync(src, { recursive: true, withFileTypes: true })
  .filter((entry) => entry.isFile() && /(?<!\.d)\.ts$/.test(entry.name))
  .map((entry) => {
    const path = join(entry.parentPath, entry.name);
    return { path, name: relative(src, path), folder: folderOf(path), text: readFileSync(path, "utf8") };
  });

/** The folder of a file, without its ring: `lib`; of `src/main.ts`, `main.ts`. */
function folderOf(path: string): string {
  const parts = relative(src, path).split("/");
  return parts[parts.length > 1 ? 1 : 0] ?? "";
}

interface Import {
  readonly isType: boolean;
  /** Target of the import: a path of this file system, a package, or a Node module. */
  readonly from: string;
}

const importsOf = ({ path, text }: (typeof files)[number]): Import[] => {
  const clauses = text.matchAll(/^(?:import|export)\s+(type\s)?(?:[\w$*{},\s]+\sfrom\s+)?"([^"]+)"/gm);
  const calls = text.matchAll(/\bimport\(()\s*"([^"]+)"/g);
  return [...clauses, ...calls].map(([, type, from = ""]) => ({
    isType: Boolean(type),
    from: from.startsWith(".") ? join(dirname(path), from) : from,
  }));
};

/** The name by which the table knows what is imported: a folder, a package or a Node module. */
const nameOf = (from: string): string => {
  if (from.startsWith("/")) return folderOf(from);
  return from.startsWith("node:") ? from : from.split("/", from.startsWith("@") ? 2 : 1).join("/");
};

/** `file: …` for each file in which the pattern occurs. */
const found = (pattern: RegExp, among = files): string[] =>
  among.flatMap(({ name, text }) => text.match(pattern)?.map((match) => `${name}: ${match}`) ?? []);

/** Number of the line in which a place of the text is. */
const lineAt = (text: string, index: number): number => text.slice(0, index).split("\n").length;

interface FunctionNode {
  readonly start: number;
  readonly params: readonly unknown[];
}

/** Every function in a syntax tree: declarations, methods, constructors, arrows, and the types of functions. */
function functionsIn(node: unknown): FunctionNode[] {
  if (typeof node !== "object" || node === null) return [];
  const within = Object.values(node).flatMap(functionsIn);
  // The parameters of a type, `Map<K, V>`, are a node themselves, and not a list.
  return "params" in node && Array.isArray(node.params) ? [node as FunctionNode, ...within] : within;
}

describe("the architecture", () => {
  it.each(rows)("$folder imports only what its row names", ({ folder, allowed }) => {
    const others = files
      .filter((file) => file.folder === folder)
      .flatMap((file) => importsOf(file).map(({ isType, from }) => ({ file: file.name, isType, what: nameOf(from) })))
      .filter(
        ({ isType, what }) =>
          what !== folder && !allowed.includes(what) && !(isType && allowed.includes(`type:${what}`)),
      )
      .map(({ file, isType, what }) => `${file} imports ${isType ? "type:" : ""}${what}`);
    expect(others).toEqual([]);
  });

  it("has no row that allows more than is used", () => {
    const unused = rows.flatMap(({ folder, allowed }) => {
      const used = files.filter((file) => file.folder === folder).flatMap(importsOf);
      return allowed
        .filter(
          (what) =>
            !used.some(
              ({ isType, from }) =>
                nameOf(from) === what.replace("type:", "") && (isType === what.startsWith("type:") || isType),
            ),
        )
        .map((what) => `${folder}: ${what}`);
    });
    expect(unused).toEqual([]);
  });

  it("has imports that go to earlier rows only, and none among the adapters or among the edges", () => {
    const place = (folder: string): number => rows.findIndex((row) => row.folder === folder);
    const wrong = rows.flatMap(({ ring, folder, allowed }) =>
      allowed
        .map((what) => what.replace("type:", ""))
        .filter((what) => place(what) >= 0)
        .filter((what) => place(what) >= place(folder) || (alone.includes(ring) && rows[place(what)]?.ring === ring))
        .map((what) => `${folder} may import ${what}`),
    );
    expect(wrong).toEqual([]);
  });

  it("has no circle of files, types included", () => {
    const imports = new Map(
      files.map((file) => [
        file.path,
        importsOf(file)
          .map(({ from }) => from)
          .filter((from) => from.startsWith("/")),
      ]),
    );
    const done = new Set<string>();
    const circles: string[] = [];
    const visit = (path: string, way: readonly string[]): void => {
      if (way.includes(path))
        circles.push([...way.slice(way.indexOf(path)), path].map((one) => relative(src, one)).join(" → "));
      if (done.has(path) || way.includes(path)) return;
      for (const next of imports.get(path) ?? []) visit(next, [...way, path]);
      done.add(path);
    };
    for (const path of imports.keys()) visit(path, []);
    expect(circles).toEqual([]);
  });

  it("knows every folder of src, and they stand in their rings", () => {
    const known = rows.map(({ ring, folder }) => (folder === "main.ts" ? "." : `${ring}/${folder}`));
    expect(files.filter(({ name }) => !known.includes(dirname(name))).map(({ name }) => name)).toEqual([]);
  });

  it("has no import that this test cannot read, but for the commands, tools and sensors that load.ts finds", () => {
    const readable = files.filter(({ name }) => name !== "app/start/load.ts");
    expect(found(/\bimport\((?!\s*")|\brequire\(|from '/g, readable)).toEqual([]);
  });

  it("reads the environment in config.ts alone", () => {
    const others = files.filter(({ name }) => name !== "app/config/config.ts");
    expect(found(/\bprocess\s*(?:\.\s*|\[\s*["'])env\b|\bloadEnvFile\b/g, others)).toEqual([]);
  });

  it("asks the outside in two places, which put limits on every answer: hosts of the configuration, and those that a text may name; the demo asks only its own homeserver", () => {
    const doors = ["base/lib/outside.ts", "adapters/web/way-out.ts"];
    const others = files.filter(({ name, folder }) => !doors.includes(name) && folder !== "demo");
    expect(found(/(?<![.#\w])fetch\(|\bhttps?\.(?:request|get)\(/g, others)).toEqual([]);
  });

  it("has no transaction that stays open between statements", () => {
    expect(found(/\bsql\.(?:begin|beginDistributed|reserve)\b|`\s*(?:begin|start transaction)\b/gi)).toEqual([]);
  });

  it("has files of 300 lines at most", () => {
    const long = files.map(({ name, text }) => ({ name, lines: text.trimEnd().split("\n").length }));
    expect(long.filter(({ lines }) => lines > 300)).toEqual([]);
  });

  it("has no function with more than four parameters, a type's and an interface's included", () => {
    const long = files.flatMap(({ name, text }) =>
      functionsIn(parseAst(text, { lang: "ts" }))
        .filter(({ params }) => params.length > 4)
        .map(({ start }) => `${name}:${lineAt(text, start)}`),
    );
    expect(long).toEqual([]);
  });

  it("exports no name twice, but for the commands, tools and sensors that load.ts finds", () => {
    const named = /^export (?:abstract |async )?(?:interface|type|class|function\*?|const) (\w+)/gm;
    const loaded = ["command", "commands", "tool", "sensor"];
    const exported = files.flatMap(({ name, text }) =>
      [...text.matchAll(named)].map(([, word = ""]) => ({ name, word })).filter(({ word }) => !loaded.includes(word)),
    );
    const shared = [...Map.groupBy(exported, ({ word }) => word)].filter(([, places]) => places.length > 1);
    expect(shared.map(([word, places]) => `${word}: ${places.map(({ name }) => name).join(", ")}`)).toEqual([]);
  });

  it("has comments that begin with a verb or a noun that acts, never with What, Whether or The same", () => {
    const empty = /(?:\/\*\*?\s*(?:\*\s*)?|(?<!:)\/\/\s*|^\s*(?:\*|--)\s*)(?:What|Whether|The same)\b/gm;
    const texts = ["src", "test", "migrations"].flatMap((folder) =>
      readdirSync(join(project, folder), { recursive: true, encoding: "utf8" })
        .filter((name) => /\.(?:ts|sql)$/.test(name))
        .map((name) => ({ name: join(folder, name), text: readFileSync(join(project, folder, name), "utf8") })),
    );
    const places = texts.flatMap(({ name, text }) =>
      [...text.matchAll(empty)].map(({ 0: match, index }) => `${name}:${lineAt(text, index + match.length)}`),
    );
    expect(places).toEqual([]);
  });

  it("names what is true or false by a statement, such as isOpen or endsTurn, and leaves to formats their own words", () => {
    const others = ["src", "test", "examples"].flatMap((folder) =>
      readdirSync(join(project, folder), { recursive: true, encoding: "utf8" })
        .filter((name) => /(?<!\.d)\.ts$/.test(name))
        .map((name) => join(folder, name))
        .flatMap((name) =>
          [...readFileSync(join(project, name), "utf8").matchAll(/(\w+)\??: boolean\b/g)]
            .map(([, word = ""]) => word)
            .filter((word) => !statement.test(word) && !formatWords[name]?.split(" ").includes(word))
            .map((word) => `${name}: ${word}`),
        ),
    );
    expect(others).toEqual([]);
  });

  it("has migrations that are numbered without gaps", () => {
    const migrations = readdirSync(join(project, "migrations")).sort();
    expect(migrations.map((name) => /^(\d{4})-[a-z-]+\.sql$/.exec(name)?.[1])).toEqual(
      migrations.map((_, index) => String(index + 1).padStart(4, "0")),
    );
  });
});
