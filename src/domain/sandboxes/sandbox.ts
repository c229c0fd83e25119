import type { Runner } from "../../adapters/sandbox/runner.ts";
import type { Conversation } from "../../base/lib/ids.ts";

/** Sandbox of a conversation while it runs. */
export interface RunningSandbox {
  readonly runner: Runner;
  /** Id of this run: what is started names it, so that it never starts in a later one. */
  readonly boot: string;
}

/** Hands out the sandboxes of conversations: each has one of its own. */
export interface SandboxProvider {
  /**
   * Starts the conversation's sandbox where it does not run, makes it where there is none, and counts as use: it is not
   * stopped as idle for a while. Keep nothing of it beyond the call: ask again.
   * @throws UserError that says why there is none now, and what somebody can do
   */
  use(conversation: Conversation): Promise<RunningSandbox>;
}
