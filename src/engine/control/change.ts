import type { AuditRow } from "../../domain/tables/audit.ts";

/** Text as Markdown shows it unchanged. */
const verbatim = (text: string | null): string => {
  if (text === null) return "nothing";
  return /[`\n]/.test(text) ? `\n~~~\n${text.replaceAll("~~~", "~ ~ ~")}\n~~~\n` : `\`${text}\``;
};

/** Describes a change: from what, to what. */
export const changeText = ({ subject, before, after }: AuditRow): string =>
  before === after
    ? `${subject} is ${verbatim(after)} already.`
    : `${subject}: ${verbatim(before)} → ${verbatim(after)}`;
