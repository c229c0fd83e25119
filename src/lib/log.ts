import { type Logger, pino } from "pino";

export type Log = Logger;

/** Structured log on standard output. Secrets are never passed to it: callers name fields, not whole objects. */
export const createLog = (level: string): Log => pino({ level, base: null });

export const silentLog: Log = pino({ level: "silent" });
