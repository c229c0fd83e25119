import type { Duplex } from "node:stream";
import type { SandboxLimits } from "./limits.ts";

/** A sandbox as it is to be. */
export interface SandboxSpec {
  /** Unique on its host: lower-case letters, digits and hyphens. It is the sandbox's id. */
  readonly name: string;
  /** By which it is found again. */
  readonly labels: Readonly<Record<string, string>>;
  readonly image: string;
  /** First user id of the host that its own users are mapped to. A workspace keeps it: its files belong to these users. */
  readonly firstUid: number;
  readonly limits: SandboxLimits;
}

/** A sandbox as it is. */
export interface SandboxState {
  readonly id: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly isRunning: boolean;
}

/** One thing that was looked at, by its name. */
export interface HostFinding {
  readonly point: string;
  /** `unsafe`: sandboxes would run, but not behind the walls that they need. */
  readonly state: "ok" | "missing" | "unsafe";
  readonly says: string;
  /** Says how to mend it. */
  readonly remedy?: string;
}

/** Room that the files of a workspace take. */
export interface WorkspaceSize {
  readonly bytes: number;
  /** Files, folders and links. */
  readonly files: number;
}

/** The host could not do it. Its message is for operators; `remedy` says what they can do. */
export class HostError extends Error {
  override readonly name = "HostError";
  readonly remedy: string | undefined;

  constructor(message: string, remedy?: string) {
    super(message);
    this.remedy = remedy;
  }
}

/**
 * Machine on which sandboxes run: the only thing that knows how. All methods may be repeated. Everything that happens
 * inside of a sandbox goes over the stream of `connect`.
 */
export interface SandboxHost {
  /**
   * Looks at all that sandboxes need, and at one sandbox from inside; makes nothing that stays. Ends with the first
   * finding on which the others depend.
   * @param spec of the sandbox that is looked at
   */
  check(spec: SandboxSpec): AsyncIterable<HostFinding>;
  /** Makes a sandbox with an empty workspace, or with its own where it has one; a stopped one gets this spec. */
  create(spec: SandboxSpec): Promise<string>;
  /** Sandboxes with this label, in no order. */
  find(label: { readonly name: string; readonly value: string }): Promise<readonly SandboxState[]>;
  start(id: string): Promise<void>;
  /** Ends everything that runs in it; the workspace stays. */
  stop(id: string): Promise<void>;
  /** Removes it with its workspace. */
  remove(id: string): Promise<void>;
  /** Size of its workspace as the host counts it: nothing inside can hide a file. Undefined where it cannot be counted. */
  measure(id: string): Promise<WorkspaceSize | undefined>;
  /** Stream to the runner of a running sandbox. Where it is not running, the stream ends at once. */
  connect(id: string): Promise<Duplex>;
}
