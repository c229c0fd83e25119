import { enableCompileCache, flushCompileCache } from "node:module";
import { join } from "node:path";
import { createInterface } from "node:readline/promises";
import { Command } from "commander";
import { readRegistration } from "./adapters/matrix/registration.ts";
import { demoEnvironment, loadConfig } from "./app/config/config.ts";
import type { BuildOptions } from "./app/operator/build-sandbox.ts";
import { findingText } from "./app/operator/check-finding.ts";
import { init, refuseFiles, rotateFolderTokens } from "./app/operator/init.ts";
import type { Answers } from "./app/operator/init-questions.ts";
import { UserError } from "./base/lib/errors.ts";
import { createLog } from "./base/lib/log.ts";
import { nearest, shortenTyped } from "./base/lib/nearest.ts";

// Cache compiled code between starts: saves about a third of start-up CPU. Where the folder cannot be written, nothing
// is saved. With NODE_COMPILE_CACHE more is saved: then Node does not even load its TypeScript, in no thread.
enableCompileCache(join(import.meta.dirname, "../node_modules/.cache/compiled"));

// The bridge library rests on `request`, whose deprecated calls are none of the operator's business.
process.noDeprecation = true;

const tell = (line: string): void => void process.stdout.write(`${line}\n`);

const program = new Command("clevernet").description("A home for AI agents on Matrix.").showHelpAfterError();

program
  .command("start", { isDefault: true })
  .description("run the bridge")
  .option("--config <file>", "the configuration file", "config.yaml")
  .action(async ({ config: file }: { config: string }) => {
    const config = await loadConfig(file);
    const registration = await readRegistration(config.registration, {
      serverName: config.homeserver.serverName,
      url: config.bridge.url,
    });
    const log = createLog(config.logLevel);
    for (const warning of config.warnings) log.warn(warning);
    const asked = new AbortController();
    const ended = new Promise<void>((resolve) => {
      for (const signal of ["SIGTERM", "SIGINT"] as const) {
        // It listens to the end: execa, with a child that runs, would end this process where nobody does any more.
        process.on(signal, () => {
          if (asked.signal.aborted) process.exit(1);
          asked.abort();
          resolve();
        });
      }
    });
    const { startBridge } = await import("./app/start/start.ts");
    const bridge = await startBridge(config, registration, log, asked.signal).catch((error: unknown) => {
      if (asked.signal.aborted) return undefined;
      throw error;
    });
    if (!bridge) return;
    // A process that is killed leaves it to the next, too.
    flushCompileCache();
    await ended;
    log.info("ending: what runs is finished or left to the next start");
    await bridge.stop();
    log.info("ended");
    // A tool that was left behind and still waits does not hold the process.
    process.exit();
  });

program
  .command("check")
  .description("look at everything that the bridge needs, and say how to mend what fails")
  .option("--config <file>", "the configuration file", "config.yaml")
  .option("--json", "a list of { id, state, says, remedy }")
  .action(async ({ config: file, json }: { config: string; json?: boolean }) => {
    const { check } = await import("./app/operator/check.ts");
    const findings = [];
    for await (const finding of check(file)) {
      findings.push(finding);
      if (!json) tell(findingText(finding));
    }
    if (json) tell(JSON.stringify(findings, undefined, 2));
    if (findings.some(({ state }) => state === "failed")) process.exitCode = 1;
  });

program
  .command("dump <file>")
  .description("write everything into a file, from which either kind of database can be restored")
  .option("--config <file>", "the configuration file", "config.yaml")
  .action(async (file: string, { config }: { config: string }) =>
    tell(await (await import("./app/operator/dump.ts")).dumpTo(config, file)),
  );

program
  .command("restore <file>")
  .description("put a dump into the configured database, which must be empty")
  .option("--config <file>", "the configuration file", "config.yaml")
  .action(async (file: string, { config }: { config: string }) =>
    tell(await (await import("./app/operator/dump.ts")).restoreFrom(config, file)),
  );

program
  .command("init")
  .description("write config.yaml and registration.yaml for a homeserver")
  .requiredOption("--dir <dir>", "the folder for both files")
  .option("--homeserver <url>", "where we reach the homeserver")
  .option("--admin <mxid>", "your full user id; it gives the server's name")
  .option("--url <url>", "where the homeserver reaches us")
  .option("--model-url <url>", "an OpenAI-compatible server")
  .option("--model <name>", "the model's name")
  .option("--model-key-file <file>", "a file that holds the model's key")
  .option("--database <url>", "postgres://… instead of the embedded database")
  .option("--no-test", "write what was answered without testing it")
  .option("--rotate-tokens", "make new tokens for the registration in the folder")
  .action(async ({ rotateTokens, test, ...given }: Answers & { rotateTokens?: boolean; test: boolean }) => {
    if (rotateTokens) return tell((await rotateFolderTokens(given.dir)).trimEnd());
    const { askOperator, requireFlags, testFlags } = await import("./app/operator/init-questions.ts");
    await refuseFiles(given.dir);
    const terminal = process.stdin.isTTY ? createInterface(process.stdin, process.stdout) : undefined;
    if (!terminal) requireFlags(given);
    if (test) await testFlags(given);
    const gone = new Promise<never>((_, reject) =>
      terminal?.once("close", () => reject(new UserError("init was ended: nothing is written."))),
    );
    gone.catch(() => {});
    const ask = (question: string) => Promise.race([terminal?.question(question) ?? "", gone]);
    const { homeserver = "", admin = "", ...rest } = terminal ? await askOperator(given, { ask, tell }, test) : given;
    terminal?.close();
    tell((await init({ ...rest, homeserver, admin })).trimEnd());
  });

const sandbox = program.command("sandbox").description("the computers on which agents run commands");
sandbox
  .command("build")
  .description("make the image of sandboxes; an interrupted build is resumed by the next")
  .option("--config <file>", "the configuration file, if there is one yet", "config.yaml")
  .option("--tools", "without the browser: 0.4 instead of 1 GB, and no screenshots")
  .option("--extra <packages...>", "more packages of Debian")
  .option("--ca <file>", "one more certificate authority, for machines behind a proxy that inspects TLS")
  .option("--base <image>", "an image of Debian 13 with Node.js 24 to begin with")
  .action(async (options: BuildOptions) =>
    (await import("./app/operator/build-sandbox.ts")).buildSandbox(options, tell),
  );

/** @throws UserError for a word that is no command: the default command would take it for an argument of its own */
function refuseUnknown(typed: string): void {
  const known = [...program.commands.map((command) => command.name()), "help"];
  if (typed === "" || typed.startsWith("-") || known.includes(typed)) return;
  const meant = nearest(typed, known);
  const hint = meant === undefined ? "" : ` Did you mean ${meant}?`;
  throw new UserError(`There is no command ${shortenTyped(typed)}.${hint} Commands: ${known.join(", ")}.`);
}

// Work that was begun is finished, though nobody reads on (`| head`).
process.stdout.on("error", () => {});
const demonstration = () => import("./edges/demo/demo.ts");
const demo = program
  .command("demo")
  .description("start a homeserver, the bridge and an agent to talk to, all of it on this machine and in .demo/")
  .action(async () => (await demonstration()).startDemo(demoEnvironment(), tell));
demo
  .command("say <text...>")
  .description("say something to the agent, and print what it answers")
  .allowUnknownOption()
  .action(async (words: string[]) => (await demonstration()).sayInDemo(words.join(" "), tell));
demo
  .command("stop")
  .description("end all of it")
  .action(async () => (await demonstration()).stopDemo(demoEnvironment(), tell));
demo
  .command("reset")
  .description("end all of it, and delete .demo/")
  .action(async () => (await demonstration()).resetDemo(demoEnvironment(), tell));
demo
  .command("rehearsal", { hidden: true })
  .requiredOption("--port <port>")
  .action(async ({ port }: { port: string }) => {
    const { startRehearsalModel } = await import("./edges/demo/rehearsal-model.ts");
    await startRehearsalModel({ port: Number(port) });
  });

try {
  refuseUnknown(process.argv[2] ?? "");
  await program.parseAsync();
} catch (error) {
  if (!(error instanceof UserError)) throw error;
  process.stderr.write(`clevernet: ${error.message}\n`);
  process.exitCode = 1;
}
