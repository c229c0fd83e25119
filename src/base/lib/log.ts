import { AsyncLocalStorage } from "node:async_hooks";
import { type Logger, pino } from "pino";

export type Log = Logger;

/** Names what is being worked on: it stands in every line that is logged meanwhile, whoever logs it. */
interface Subject {
  readonly agent?: string;
  readonly room?: string;
  /** The agent's number of the turn, as people see it. */
  readonly turn?: number;
}

const subjects = new AsyncLocalStorage<Subject>();

/** Does the work, and says in every line of the log from it what it is about. */
export const about = <Result>(subject: Subject, work: () => Result): Result =>
  subjects.run({ ...subjects.getStore(), ...subject }, work);

/** Structured log on standard output. Secrets are never passed to it: callers name fields, not whole objects. */
export const createLog = (level: string, stream?: { write(line: string): void }): Log => {
  const options = { level, base: null, mixin: () => ({ ...subjects.getStore() }) };
  return stream ? pino(options, stream) : pino(options);
};

export const silentLog: Log = pino({ level: "silent" });
