import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { Registry } from "prom-client";
import { describe, expect, it } from "vitest";
import packageJson from "../package.json" with { type: "json" };
import { loadAll } from "../src/app/start/load.ts";
import { createMetrics } from "../src/app/start/metrics.ts";
import type { AnyCommand } from "../src/engine/control/define-command.ts";
import { familyOf, findForm } from "../src/engine/operations/command-line.ts";
import type { AnyTool } from "../src/engine/operations/tool.ts";

const project = join(import.meta.dirname, "..");
const read = (path: string): string => readFileSync(join(project, path), "utf8");

const documents = ["README.md", "CHANGELOG.md", ...readdirSync(join(project, "docs")).map((file) => `docs/${file}`)]
  .filter((path) => path.endsWith(".md"))
  .map((path) => ({ path, text: read(path) }));

const fences = /^( *)```(.*)\n([\s\S]*?)^\1```$/gm;
const withoutCode = (text: string): string => text.replace(fences, "");

/** Anchors of a document's headings, as GitHub makes them. */
function anchorsOf(text: string): Set<string> {
  const seen = new Map<string, number>();
  const anchors = [...withoutCode(text).matchAll(/^#+ (.+)$/gm)].map(([, heading = ""]) => {
    const anchor = heading
      .toLowerCase()
      .replace(/[^\p{L}\p{N}\s_-]/gu, "")
      .trim()
      .replaceAll(" ", "-");
    const count = seen.get(anchor) ?? 0;
    seen.set(anchor, count + 1);
    return count === 0 ? anchor : `${anchor}-${count}`;
  });
  return new Set(anchors);
}

/** Links within the project that lead nowhere. */
const brokenLinks = ({ path, text }: (typeof documents)[number]): string[] =>
  [...withoutCode(text).matchAll(/\]\(([^)\s]+)\)/g)]
    .map(([, target = ""]) => target)
    .filter((target) => !/^[a-z]+:/.test(target))
    .filter((target) => {
      const [file = "", anchor] = target.split("#");
      const place = file === "" ? path : relative(project, join(project, dirname(path), file));
      if (!existsSync(join(project, place))) return true;
      return anchor !== undefined && !anchorsOf(place === path ? text : read(place)).has(anchor);
    });

/** Lines of the shell in a document, without comments; those with `isRun` stand in blocks that are marked `sh run`. */
const shellLines = (text: string): { readonly line: string; readonly isRun: boolean }[] =>
  [...text.matchAll(fences)]
    .filter(([, , info = ""]) => info.split(" ")[0] === "sh")
    .flatMap(([, , info = "", block = ""]) =>
      block
        .split("\n")
        .map((line) => line.replace(/\s+# .*$/, "").trim())
        .filter((line) => line !== "")
        .map((line) => ({ line, isRun: info === "sh run" })),
    );

const demoTest = "test/e2e/demo.test.ts";

/** The test that runs a line of a marked block: its file, and the call in it. */
const runs: Readonly<Record<string, { readonly file: string; readonly call: string }>> = {
  "npm run demo": { file: demoTest, call: "await demo();" },
  'npm run demo -- say "hello"': { file: demoTest, call: 'demo(["say", "hello"])' },
  "npm run demo -- stop": { file: demoTest, call: 'demo(["stop"])' },
};

const sources = ["src", "examples"].flatMap((folder) =>
  readdirSync(join(project, folder), { recursive: true, encoding: "utf8" }),
);
const spans = (text: string): string[] => [...withoutCode(text).matchAll(/`([^`\n]+)`/g)].map(([, span = ""]) => span);

describe.each(documents)("$path", ({ path, text }) => {
  it("has links that lead somewhere", () => expect(brokenLinks({ path, text })).toEqual([]));

  it("has marked blocks whose every line a test runs", () => {
    const marked = shellLines(text).filter(({ isRun }) => isRun);
    const unrun = marked.filter(({ line }) => {
      const test = Object.hasOwn(runs, line) ? runs[line] : undefined;
      return !test || !read(test.file).includes(test.call);
    });
    expect(unrun).toEqual([]);
  });

  it("names scripts and subcommands that there are", () => {
    const program = read("src/main.ts");
    const wrong = shellLines(text).flatMap(({ line }) => {
      const [, script, subcommand] = /npm run (\S+)(?: -- ([a-z]+))?/.exec(line) ?? [];
      if (script === undefined) return [];
      const isKnown = Object.hasOwn(packageJson.scripts, script);
      const takesSubcommand = script === "clevernet" || script === "demo";
      const isRight = !takesSubcommand || !subcommand || program.includes(`.command("${subcommand}`);
      return isKnown && isRight ? [] : [line];
    });
    expect(wrong).toEqual([]);
  });

  it("names commands that there are", async () => {
    const tools = await loadAll<AnyTool>("tools", "tool");
    const forms = [...(await loadAll<readonly AnyCommand[]>("commands", "commands")).flat(), ...tools];
    const unknown = spans(text)
      .filter((span) => /^![a-z]/i.test(span) && !span.includes(":"))
      .map((span) => span.slice(1).replace(/^helper /, ""))
      .filter((line) => line !== "COMMAND" && !findForm(forms, line) && familyOf(forms, line).length === 0);
    expect(unknown).toEqual([]);
  });

  it("names files of the sources that there are", () => {
    const missing = spans(text)
      .filter(
        (span) => /^[\w./-]+\.(ts|service)$/.test(span) || /^(src|test|migrations|examples)\/[\w./-]*$/.test(span),
      )
      .filter((span) => !existsSync(join(project, span)))
      .filter((span) => !sources.some((file) => file === span || file.endsWith(`/${span}`)));
    expect(missing).toEqual([]);
  });
});

it("a link that leads nowhere is noticed, and so is a heading that is not there", () => {
  const text =
    "[a](nowhere.md) [b](docs/using.md#files) [c](docs/using.md#nothing) [d](#here) [e](#there)\n\n# Here!\n";
  expect(brokenLinks({ path: "README.md", text })).toEqual(["nowhere.md", "docs/using.md#nothing", "#there"]);
});

it("architecture.md has a row for each folder of src", () => {
  const map = read("docs/architecture.md");
  const folders = ["base", "adapters", "domain", "engine", "edges", "app"].flatMap((ring) =>
    readdirSync(join(project, "src", ring)),
  );
  expect(folders.filter((folder) => !map.includes(`| \`${folder}\` |`))).toEqual([]);
});

it("contributing.md says why each package is there", () => {
  const document = read("docs/contributing.md");
  const packages = Object.keys({ ...packageJson.dependencies, ...packageJson.devDependencies });
  const stubbed = "@matrix-org/matrix-sdk-crypto-nodejs";
  const without = packages.filter((name) => !name.startsWith("@types/") && name !== stubbed);
  expect(without.filter((name) => !document.includes(`\`${name}\``))).toEqual([]);
});

it("operating.md knows every metric, and no other", async () => {
  const registry = new Registry();
  const metrics = createMetrics(registry);
  metrics.running(() => 0);
  metrics.embedding(() => false);
  metrics.encryption.open(() => 0);
  const made = (await registry.getMetricsAsJSON())
    .map(({ name }) => name)
    .filter((name) => name.startsWith("clevernet_"));
  const named = new Set([...read("docs/operating.md").matchAll(/clevernet_[a-z_]+/g)].map(([name]) => name));
  expect([...named].sort()).toEqual(made.sort());
});
