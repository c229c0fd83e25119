import { CronExpressionParser } from "cron-parser";
import { DateTime } from "luxon";
import { validateDetailed } from "node-cron";
import { messageOf, UserError } from "../../base/lib/errors.ts";
import { localTime } from "../../base/prompt/time.ts";

const cronFormat = "five fields: minute, hour, day of month, month, day of week, such as 0 9 * * 1-5";
const timeFormat =
  "a date and time such as 2026-12-24T18:00, in the agent's time zone, or with a Z or an offset such as +01:00";

const months = "jan feb mar apr may jun jul aug sep oct nov dec".split(" ");
const weekdays = "sun mon tue wed thu fri sat".split(" ");
const cronFields = [
  { name: "minute", least: 0, most: 59, words: [] },
  { name: "hour", least: 0, most: 23, words: [] },
  { name: "day of month", least: 1, most: 31, words: [] },
  { name: "month", least: 1, most: 12, words: months },
  { name: "day of week", least: 0, most: 7, words: weekdays },
] as const;

/**
 * The first time after `after` at which a cron expression is due on the clocks of a time zone (IANA name). A time that
 * a change of clocks leaves out comes as much later, one that comes twice is due once.
 * @throws UserError for an expression that is none, or is never due
 */
export function nextTime(cron: string, timeZone: string, after: Date): Date {
  const problems = problemsOf(cron);
  if (problems.length > 0) throw new UserError(`cron: ${problems.join("; ")}. Write ${cronFormat}.`);
  try {
    return CronExpressionParser.parse(cron, { currentDate: after, tz: timeZone }).next().toDate();
  } catch (error) {
    throw new UserError(`cron: ${messageOf(error)}. Write ${cronFormat}.`);
  }
}

/** Reasons why it is no cron expression, in the words of the person who wrote it. */
function problemsOf(cron: string): string[] {
  const fields = cron.trim().split(/\s+/).filter(Boolean);
  if (fields.length !== cronFields.length) return [`it has no five fields, but ${fields.length}`];
  const wrong = fields.flatMap(problemsOfField);
  if (wrong.length > 0) return wrong;
  const impossible = impossibleDay(fields[2] ?? "", fields[3] ?? "");
  if (impossible !== undefined) return [impossible];
  return validateDetailed(cron).errors.map(({ message }) => message);
}

function problemsOfField(field: string, place: number): string[] {
  const rule = cronFields[place];
  if (!rule) return [];
  const { name, least, most, words } = rule;
  const numbers = (field.replace(/\/\d+/g, "").match(/\d+/g) ?? []).map(Number);
  const outside = numbers.filter((number) => number < least || number > most);
  const unknown = (field.match(/[a-z]{3,}/gi) ?? []).filter((word) => !words.some((one) => one === word.toLowerCase()));
  return [
    ...outside.map((number) => `the ${name} ${number} is not between ${least} and ${most}`),
    ...unknown.map((word) => `"${word}" is no ${name}${words.length > 0 ? `: write one of ${words.join(", ")}` : ""}`),
    ...(/\/0+(?!\d)/.test(field) ? [`the ${name} cannot come every 0`] : []),
  ];
}

/** Days of the month that none of the months has, such as 30 in February. */
function impossibleDay(day: string, month: string): string | undefined {
  const list = /^\d+(?:,\d+)*$/;
  if (!list.test(day) || !list.test(month)) return undefined;
  const days = day.split(",").map(Number);
  // 2028 is a leap year.
  const longest = Math.max(...month.split(",").map((one) => DateTime.utc(2028, Number(one)).daysInMonth ?? 0));
  return Math.min(...days) > longest ? `month ${month} has no day ${day}` : undefined;
}

/** Years have four digits, as everywhere where they are shown and stored. */
const lastYear = 9999;

/** @throws UserError for what is no time, or is not after `now` */
export function timeAt(at: string, timeZone: string, now: Date): Date {
  const time = DateTime.fromISO(at.trim().replace(/(?<=^\S+)\s+(?=\S+$)/, "T"), { zone: timeZone });
  if (!time.isValid) throw new UserError(`at: ${impossiblePart(at)}"${at}" is no time. Write ${timeFormat}.`);
  if (time.toUTC().year > lastYear) throw new UserError(`at: ${at} is too far away: the last year is ${lastYear}.`);
  if (time.toMillis() <= now.getTime()) {
    const clock = localTime(now, timeZone);
    throw new UserError(`at: ${at} has passed. In the agent's time zone, ${timeZone}, it is ${clock}.`);
  }
  return time.toJSDate();
}

/** The part of a date and time that no calendar or clock has, as a sentence. */
function impossiblePart(at: string): string {
  const found = /^(\d{4})-(\d\d)(?:-(\d\d)(?:[T\s](\d\d)(?::(\d\d))?)?)?/.exec(at.trim());
  if (!found) return "";
  const [, year = 0, month = 0, day = 1, hour = 0, minute = 0] = found.map(Number);
  if (month < 1 || month > 12) return `There is no month ${month}. `;
  const days = DateTime.utc(year, month).daysInMonth ?? 31;
  if (day < 1 || day > days) return `${found[1]}-${found[2]} has no day ${day}. `;
  if (hour > 23) return `There is no hour ${hour}. `;
  return minute > 59 ? `There is no minute ${minute}. ` : "";
}

const cronField = /^(?:[\d*/,\-?LW#]|jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec|sun|mon|tue|wed|thu|fri|sat)+$/i;

/**
 * A time, or a cron expression, that a text begins with: `0 9 * * 1-5 Good morning`. What was meant for a cron
 * expression and is none is one here, too: `nextTime` says what is wrong with it.
 */
export function splitTime(text: string): { readonly cron?: string; readonly at?: string; readonly text: string } {
  const date = /^\d{4}-\d\d\S*(?:\s+\d\d:\d\d\S*)?/.exec(text)?.[0];
  if (date !== undefined) return { at: date.replace(/\s+/, " "), text: text.slice(date.length).trim() };
  const words = text.match(/^\S+|(?<=\s)\S+/g) ?? [];
  const beginning = words.findIndex((word) => !cronField.test(word));
  const fields = words.slice(0, Math.min(cronFields.length, beginning < 0 ? words.length : beginning));
  const isMeant = fields.length === cronFields.length || (fields.length > 1 && fields.some((one) => one.includes("*")));
  if (!isMeant) return { text };
  const behind = new RegExp(String.raw`^(?:\S+\s*){${fields.length}}`).exec(text)?.[0].length ?? 0;
  return { cron: fields.join(" "), text: text.slice(behind).trim() };
}
