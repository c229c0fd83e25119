/** The time of an event, ISO 8601 in UTC to the second: `2024-12-25T12:00:00Z`. */
export const eventTime = (at: Date): string => at.toISOString().replace(/\.\d+Z$/, "Z");

/** Making one takes longer than using it a hundred times. */
const formats = new Map<string, Intl.DateTimeFormat>();

const formatOf = (timeZone: string): Intl.DateTimeFormat =>
  new Intl.DateTimeFormat("en-US", {
    timeZone,
    hourCycle: "h23",
    year: "numeric",
    month: "2-digit",
    day: "2-digit",
    hour: "2-digit",
    minute: "2-digit",
    second: "2-digit",
    timeZoneName: "longOffset",
  });

/** A time to come, in words for people in a time zone: `tomorrow, 08:15`. */
export function untilText(at: Date, now: Date, timeZone: string): string {
  const [day = "", clock = ""] = localTime(at, timeZone).split(" ");
  const daysOn = (days: number) => localTime(new Date(now.getTime() + days * 86_400_000), timeZone).slice(0, 10);
  const word = day === daysOn(0) ? "today" : day === daysOn(1) ? "tomorrow" : day;
  return `${word}, ${clock.slice(0, 5)}${timeZone === "UTC" ? " UTC" : ""}`;
}

/** The clock on the wall of a time zone (IANA name), with its offset: `2024-12-25 15:30:00 -0800`. */
export const localTime = (at: Date, timeZone: string): string => {
  const format = formats.get(timeZone) ?? formatOf(timeZone);
  formats.set(timeZone, format);
  const part = Object.fromEntries(format.formatToParts(at).map(({ type, value }) => [type, value]));
  const offset = /[+-]\d\d:\d\d/.exec(part.timeZoneName ?? "")?.[0].replace(":", "") ?? "+0000";
  return `${part.year}-${part.month}-${part.day} ${part.hour}:${part.minute}:${part.second} ${offset}`;
};
