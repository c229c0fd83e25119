import type { Conversation } from "./routing.ts";

/**
 * Jobs that say "this conversation has work": at most one running and one waiting for each conversation. A job
 * carries nothing but the conversation: what there is to do stands in the tables.
 */
export interface Queue {
  start(): Promise<void>;

  /**
   * Hands each conversation's jobs, one at a time, to `handler`; up to `concurrency` conversations side by side. A job
   * for which it does not return true comes again, to whoever is there.
   */
  work(concurrency: number, handler: (conversation: Conversation) => Promise<boolean>): Promise<void>;

  /** Returns whether this process has room for it now. */
  send(conversation: Conversation): Promise<boolean>;

  /** Looks for a job that others have sent; false where there is no room for one. */
  look(): boolean;

  /** Takes away the jobs of conversations whose process died, without waiting for that to be noticed. */
  release(conversations: readonly Conversation[]): Promise<void>;

  stop(): Promise<void>;
}

export const keyOf = ({ agent, roomId }: Conversation): string => `${agent}|${roomId}`;
