import type { AuditRow } from "../../domain/tables/audit.ts";

/** Text as Markdown shows it unchanged. */
const quoteVerbatim = (text: string | null): string => {
  if (text === null) return "nothing";
  return /[`\n]/.test(text) ? `\n~~~\n${text.replaceAll("~~~", "~ ~ ~")}\n~~~\n` : `\`${text}\``;
};

/** Describes a change: from what, to what. */
export const changeText = ({ subject, before, after }: AuditRow): string =>
  before === after
    ? `${subject} is ${quoteVerbatim(after)} already.`
    : `${subject}: ${quoteVerbatim(before)} → ${quoteVerbatim(after)}`;
