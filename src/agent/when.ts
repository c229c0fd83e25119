import { CronExpressionParser } from "cron-parser";
import { DateTime } from "luxon";
import { validateDetailed } from "node-cron";
import { messageOf, UserError } from "../lib/errors.ts";

const cronFormat = "five fields: minute, hour, day of month, month, day of week, such as 0 9 * * 1-5";
const timeFormat =
  "a date and time such as 2026-12-24T18:00, in your time zone, or with a Z or an offset such as +01:00";

/**
 * The first time after `after` at which a cron expression is due on the clocks of a time zone (IANA name). A time that
 * a change of clocks leaves out comes as much later, one that comes twice is due once.
 * @throws UserError for an expression that is none, or is never due
 */
export function nextTime(cron: string, timeZone: string, after: Date): Date {
  const { valid, errors } = validateDetailed(cron);
  const problems = errors.map(({ message }) => message);
  if (valid && cron.trim().split(/\s+/).length !== 5) problems.push("it has no five fields");
  if (problems.length > 0) throw new UserError(`cron: ${problems.join("; ")}. Write ${cronFormat}.`);
  try {
    return CronExpressionParser.parse(cron, { currentDate: after, tz: timeZone }).next().toDate();
  } catch (error) {
    throw new UserError(`cron: ${messageOf(error)}. Write ${cronFormat}.`);
  }
}

/** @throws UserError for what is no time, or is not after `now` */
export function timeAt(at: string, timeZone: string, now: Date): Date {
  const time = DateTime.fromISO(at, { zone: timeZone });
  if (!time.isValid) throw new UserError(`at: "${at}" is no time. Write ${timeFormat}.`);
  if (time.toMillis() <= now.getTime())
    throw new UserError(`at: ${at} is over already: it is ${DateTime.fromJSDate(now, { zone: timeZone }).toISO()}.`);
  return time.toJSDate();
}

/** A time, or a cron expression, that a text begins with: `0 9 * * 1-5 Good morning`. */
export function splitTime(text: string): { readonly cron?: string; readonly at?: string; readonly text: string } {
  const [first = ""] = text.split(/\s/, 1);
  if (/^\d{4}-\d\d/.test(first)) return { at: first, text: text.slice(first.length).trim() };
  const [fields = ""] = /^(?:\S+\s+){4}\S+(?=\s)/.exec(text) ?? [];
  if (/[*\d]/.test(first) && validateDetailed(fields).valid)
    return { cron: fields.replace(/\s+/g, " "), text: text.slice(fields.length).trim() };
  return { text };
}
