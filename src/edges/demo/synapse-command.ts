/** The version that the demo runs, and the tests where they are given no other. */
export const testedSynapse = "1.160.0";

/** A program that runs Synapse. */
export interface SynapseCommand {
  readonly file: string;
  readonly args: string[];
  /** The container that may outlive the process which started it. */
  readonly container?: { readonly engine: string; readonly name: string };
}

const runSynapse = "from synapse.app.homeserver import main; main()";

/** Standard input ends when the process that started Synapse is gone, however it went. */
const endWithStdin = `import os, threading
def end_with_stdin():
    while os.read(0, 4096): pass
    os._exit(1)
threading.Thread(target=end_with_stdin, daemon=True).start()
`;

/**
 * Arguments by which Python runs Synapse. With `isDetached` it outlives its parent, else it ends when its standard input
 * does.
 */
export const pythonArguments = (configFile: string, isDetached: boolean): string[] => [
  "-I",
  "-c",
  `${isDetached ? "" : endWithStdin}${runSynapse}`,
  "-c",
  configFile,
];
