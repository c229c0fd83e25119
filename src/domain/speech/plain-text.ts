import type { OutboxDraft } from "../tables/outbox.ts";

const mark = { "org.clevernet.plain": true };

/** Marks notices of ours that may stand in an encrypted room as plain text: nothing in them comes from anybody else. */
export const inPlainText = (drafts: readonly OutboxDraft[]): OutboxDraft[] =>
  drafts.map((draft) => ({ ...draft, content: { ...(draft.content as object), ...mark } }));

/** Kinds of rows that are encrypted in an encrypted room; reactions are plain there, as those of people. */
const spoken: ReadonlySet<OutboxDraft["kind"]> = new Set(["message", "file", "media", "draft"]);

/** True if the row says something that no encrypted room may hold. */
export const mustBeSealed = ({ content, kind }: OutboxDraft): boolean =>
  spoken.has(kind) && !("org.clevernet.plain" in (content as object));
