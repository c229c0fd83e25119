import { ShuttingDown, UserError } from "../../base/lib/errors.ts";
import type { Conversation, UserId } from "../../base/lib/ids.ts";
import { Stopped } from "./interruption.ts";
import { conversationKey } from "./queue.ts";

/** Limit of commands under way in one conversation. */
const most = 4;

interface UnderWay {
  readonly requester: UserId;
  /** The next process may do it again from the beginning, or go on with it. */
  readonly goesOn: boolean;
  readonly controller: AbortController;
}

/** Tools that people's commands run in this process. */
export class CommandsUnderWay {
  readonly #running = new Map<string, Set<UnderWay>>();
  #isClosing = false;

  /** Runs it with a signal that is aborted with `Stopped` or `ShuttingDown`. Throws a `UserError` where there are too many. */
  async run<Result>(
    conversation: Conversation,
    command: Omit<UnderWay, "controller">,
    work: (signal: AbortSignal) => Promise<Result>,
  ): Promise<Result> {
    const key = conversationKey(conversation);
    const running = this.#running.get(key) ?? new Set();
    if (running.size >= most)
      throw new UserError(`${most} commands are under way here. Wait until one of them has ended, or stop them.`);
    const one = { ...command, controller: new AbortController() };
    this.#running.set(key, running.add(one));
    if (this.#isClosing) end(one);
    try {
      return await work(one.controller.signal);
    } finally {
      running.delete(one);
      if (running.size === 0) this.#running.delete(key);
    }
  }

  /** Ends at once those of a conversation that `may` allows. Returns how many that were. */
  stop(conversation: Conversation, by: UserId, may: (requester: UserId) => boolean): number {
    const meant = [...(this.#running.get(conversationKey(conversation)) ?? [])].filter(({ requester }) =>
      may(requester),
    );
    for (const { controller } of meant) controller.abort(new Stopped(`stopped by ${by}`));
    return meant.length;
  }

  /** Leaves to the next process what that may do again, from now on; the rest is to end by itself. */
  close(): void {
    this.#isClosing = true;
    for (const one of [...this.#running.values()].flatMap((running) => [...running])) end(one);
  }
}

const end = ({ goesOn, controller }: UnderWay): void => {
  if (goesOn) controller.abort(new ShuttingDown("the process ends"));
};
