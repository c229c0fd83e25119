import { z } from "zod";
import { fence } from "../../adapters/matrix/markdown.ts";
import { type Element, element } from "../../base/lmml/element.ts";
import { sizeText } from "../../domain/files/tree.ts";
import type { SandboxResult } from "../../domain/sandboxes/command-journal.ts";
import { keptMegabytes, outputFile } from "../../domain/sandboxes/keep-output.ts";
import { clipOutput, type OutputCollector } from "../../domain/sandboxes/shown-output.ts";
import { sandboxTaint } from "../../domain/sandboxes/taint.ts";
import type { CommandOutcome, ShownOutput } from "../../domain/tables/sandbox-commands.ts";
import { defineTool, type ToolContext } from "../../engine/operations/tool.ts";

/** Longest command line, in bytes; Linux takes no longer argument. */
const bytesMost = 100_000;
const hourSeconds = 3_600;
/** Characters of both streams that people are shown: they can be edited into one message. */
const told = 3_000;

export const tool = defineTool({
  name: "run_command",
  set: "sandbox",
  command: "run",
  examples: ["ls -l", "--background python3 -m http.server 8080"],
  topic: "sandbox",
  description: "Runs a Bash command line on this conversation's own computer, in /workspace, whose files stay.",
  help: "Runs a Bash command line on the computer of this room, and shows its output as it comes. Files in /workspace stay. `!stop NUMBER` ends one that runs in the background.",
  wording: "Run on its computer: {command}",
  kind: "create",
  isRepeatable: false,
  mayResume: true,
  isCodeLast: true,
  check: (_, { files }) => files.requireOpenComputer(),
  input: z.object({
    command: z
      .string()
      .min(1)
      .refine((text) => Buffer.byteLength(text) <= bytesMost && !text.includes("\0"), {
        message: `must have at most ${bytesMost} bytes, and no NUL: write a longer script into a file and run that`,
      })
      .meta({ description: "Bash", help: "The command line" }),
    background: z
      .boolean()
      .optional()
      .meta({ description: "Do not wait: for servers", help: "Does not wait for its end; its output goes to a file" }),
    timeout: z.int().min(1).max(hourSeconds).optional().meta({ description: "Seconds", help: "Time limit in seconds" }),
  }),
  async run({ background = false, command, timeout }, context) {
    const { agent, by, files, key, requesters, roomId, sandboxCommands, sandboxes, showProgress, signal, sources } =
      context;
    const usual = background ? null : sandboxes.settings.limits.commandSeconds;
    const call = { agent: agent.name, roomId, key, command, requesters, sources, isBackground: background };
    const ran = await sandboxCommands.run(
      { ...call, seconds: timeout ?? usual },
      {
        signal,
        mayBegin: () => files.requireOpenComputer(),
        onOutput: showProgress && ((output, from) => showProgress(() => runningText(output), from)),
      },
    );
    const { outcome, number } = ran;
    const shown = { sources: ran.sources, taint: [sandboxTaint] };
    const file = `sandbox:${outputFile(number, background)}`;
    if (!outcome) return { ...shown, result: begunText(number, file, by) };
    const network = ran.network ?? [];
    if (outcome.reason === "lost") return { ...shown, isUnknown: true, result: lostText };
    if (by === "person") return { ...shown, result: endText(outcome, number, file) + networkText(network) };
    return { ...shown, result: endElement(outcome, number, file, network) };
  },
});

const lostText = "The computer was restarted while this ran: the outcome is not known. It was not run again.";

const begunText = (number: number, file: string, by: ToolContext["by"]): string =>
  by === "person"
    ? `Command ${number} runs in the background. Its output: \`${file}\`. To end it: \`!stop ${number}\``
    : `It runs in the background as command ${number}. Its output goes to /workspace${file.slice("sandbox:".length)}.`;

/** Says in words how a command has ended. */
function endWords({ code, reason, signal }: CommandOutcome): string {
  const how = {
    exit: code === undefined ? `ended by signal ${signal ?? "?"}` : `exit code ${code}`,
    timeout: "ended at its time limit",
    stopped: "stopped",
    memory: "ended since there was no memory left",
    disk: "ended since files took too much room on the disk",
    lost: "lost",
  };
  return how[reason];
}

/** True if the file that keeps the output has all of it, as far as the disk had room. */
const isKeptWhole = ({ bytes = 0 }: CommandOutcome): boolean => bytes <= keptMegabytes << 20;

const isWhole = ({ stderr, stdout }: CommandOutcome): boolean => stdout?.isCut !== true && stderr?.isCut !== true;

/** @param network hosts with which the computer has spoken: one that was refused explains much that fails */
function endElement(outcome: CommandOutcome, number: number, file: string, network: Network): Element {
  const { code, reason, signal, stderr, stdout } = outcome;
  const kept = isWhole(outcome) ? undefined : `/workspace${file.slice("sandbox:".length)}`;
  const keeps = isKeptWhole(outcome) ? { wholeOutput: kept } : { [`first${keptMegabytes}MB`]: kept };
  const streamOf = (name: string, shown: ShownOutput | undefined) =>
    shown?.text ? element(name, { truncated: shown.isCut }, shown.text) : undefined;
  return element(
    "command",
    { number, exitCode: code, signal, ended: reason === "exit" ? undefined : reason, ...keeps },
    [
      streamOf("stdout", stdout),
      streamOf("stderr", stderr),
      ...network.map(({ host, received, refused, sent }) =>
        element("network", {
          host,
          bytesSent: sent,
          bytesReceived: received,
          refused: refused > 0 ? refused : undefined,
        }),
      ),
    ],
  );
}

function endText(outcome: CommandOutcome, number: number, file: string): string {
  const { text, isCut } = outputText(outcome.stdout, outcome.stderr);
  const kept = isKeptWhole(outcome) ? "all" : `the first ${keptMegabytes} MB`;
  const where = isCut || !isWhole(outcome) ? `; ${kept} of its output: \`${file}\`` : "";
  return [text, `Command ${number}: ${endWords(outcome)}${where}.`].filter((part) => part !== "").join("\n\n");
}

type Network = NonNullable<SandboxResult["network"]>;

const networkText = (network: Network): string =>
  network.length === 0
    ? ""
    : `\n\nNetwork: ${network
        .map(({ host, received, refused, sent }) =>
          refused > 0 && sent + received === 0
            ? `\`${host}\` is not allowed`
            : `\`${host}\` (${sizeText(sent)} sent, ${sizeText(received)} received)`,
        )
        .join("; ")}.`;

const runningText = ({ stderr, stdout }: OutputCollector): string => {
  const { text } = outputText(stdout, stderr);
  return text === "" ? "" : `${text}\n\n*It runs.*`;
};

/** Output as people see it: both streams, cut to what fits into one message. */
function outputText(stdout: ShownOutput | undefined, stderr: ShownOutput | undefined) {
  const nothing: ShownOutput = { text: "", isCut: false };
  const [out = nothing, err = nothing] = [stdout, stderr];
  const errMost = Math.max(told / 3, told - out.text.length);
  const clippedErr = clipOutput(err, errMost);
  const clippedOut = clipOutput(out, told - clippedErr.text.length);
  const parts = [
    ...(clippedOut.text.trim() === "" ? [] : [fence(clippedOut.text.trimEnd())]),
    ...(clippedErr.text.trim() === "" ? [] : [`stderr:\n${fence(clippedErr.text.trimEnd())}`]),
  ];
  return { text: parts.join("\n\n"), isCut: clippedOut.isCut || clippedErr.isCut };
}
