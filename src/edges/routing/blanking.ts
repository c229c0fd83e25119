import type { Json } from "../../adapters/database/connection.ts";
import { giveWay } from "../../base/lib/clock.ts";
import { digest, HOME, type RoomId, type UserId } from "../../base/lib/ids.ts";
import { isObject } from "../../base/lib/json.ts";
import { blank, Repeats } from "../../base/lib/repeats.ts";
import { formatPath } from "../../domain/files/path.ts";
import type { Events } from "../../domain/tables/events.ts";
import type { OutboxDraft } from "../../domain/tables/outbox.ts";
import type { Piece, RedactionMark, RedactionMarks, Witness } from "../../domain/tables/redaction-marks.ts";
import type { WrittenFiles } from "../../domain/tables/written-files.ts";
import { blankedJson } from "../../engine/sight/blanked.ts";
import { takeBack, takenBackBecause } from "./redactions.ts";

export interface BlankingParts {
  readonly events: Events;
  readonly marks: RedactionMarks;
  readonly files: WrittenFiles;
}

interface Pass {
  /** Turns that were not over. */
  readonly open: readonly number[];
  readonly outbox: readonly OutboxDraft[];
}

/** Turns whose rows are read at once. */
const turnsAtOnce = 20;
/** Between so many rows others may go first. */
const piecesAtOnce = 20;
/** Rooms in which agents may have repeated something. */
const roomsMost = 200;

/**
 * Blanks what agents have made of a redacted event: each text that repeats its words, in whatever turns may have seen
 * it. What they have said stays in its room, and is blanked where agents are shown it. Safe to repeat.
 */
export async function blankRepetitions(mark: RedactionMark, parts: BlankingParts): Promise<Pass> {
  const { events, marks } = parts;
  const repeats = new Repeats([{ salt: mark.eventId, prints: mark.prints }]);
  // Again, for what did not see the redaction and was written after it.
  const { shown } = await events.redact(mark.eventId);
  const witnesses = await marks.witnesses(mark);
  const ids = witnesses.map(({ id }) => id);
  const outbox = shown.map(takeBack);
  let blanked = false;
  const blankAll = async (pieces: readonly Piece[]): Promise<void> => {
    const changed: Piece[] = [];
    for (const [index, piece] of pieces.entries()) {
      const blankedOne = blankedPiece(piece, repeats);
      if (blankedOne) changed.push(blankedOne);
      if (index % piecesAtOnce === 0) await giveWay();
    }
    if (changed.length === 0) return;
    await marks.blank(changed);
    outbox.push(...changed.flatMap(takenBackFor));
    blanked = true;
  };
  for (let from = 0; from < ids.length; from += turnsAtOnce)
    await blankAll(await marks.made(ids.slice(from, from + turnsAtOnce)));
  await blankAll(await marks.around(mark, whereabouts(mark, witnesses)));
  blanked = (await blankFiles(mark, ids, repeats, parts)) || blanked;
  if (blanked) await marks.emptyRenders(ids);
  return { open: witnesses.filter(({ open }) => open).map(({ id }) => id), outbox };
}

const whereabouts = ({ roomId }: RedactionMark, witnesses: readonly Witness[]) => ({
  agents: [...new Set(witnesses.map(({ agent }) => agent))],
  rooms: [...new Set([roomId, ...witnesses.map((witness) => witness.roomId)])]
    .filter((id) => id !== HOME)
    .slice(0, roomsMost),
});

/** The piece with what is to be written of it; undefined where it repeats nothing. */
function blankedPiece(piece: Piece, repeats: Repeats): Piece | undefined {
  const { kind, texts } = piece;
  switch (kind) {
    case "windows":
    case "knowledge":
      return Object.values(texts).some((text) => typeof text === "string" && repeats.in(text)) ? piece : undefined;
    case "attachments":
    case "thoughts":
      return typeof texts.text === "string" && repeats.in(texts.text) ? piece : undefined;
    case "events": {
      const content = blankedMessage(texts, repeats);
      return content && { ...piece, texts: content };
    }
    default: {
      const changed = Object.entries(texts).flatMap(([name, value]) => {
        const blanked = blankedJson(value, repeats);
        return JSON.stringify(blanked) === JSON.stringify(value) ? [] : [[name, blanked] as const];
      });
      return changed.length > 0 ? { ...piece, texts: Object.fromEntries(changed) } : undefined;
    }
  }
}

/** Content of a message with its texts blanked, also of an edit; what it is and belongs to stays. */
function blankedMessage(content: Piece["texts"], repeats: Repeats): Piece["texts"] | undefined {
  const { body, format: _, formatted_body: __, "m.new_content": edit, ...rest } = content;
  const newContent = isObject(edit) ? blankedMessage(edit as Piece["texts"], repeats) : undefined;
  if (!newContent && !(typeof body === "string" && repeats.in(body))) return undefined;
  return { ...rest, body: blank, ...(edit !== undefined && { "m.new_content": (newContent ?? edit) as Json }) };
}

/** Takes messages back that showed it: of the thoughts room, and attachments that show a turn. */
function takenBackFor({ id, kind, texts }: Piece): OutboxDraft[] {
  const place = { roomId: texts.roomId as RoomId, sender: texts.sender as UserId };
  if (kind === "attachments" && texts.shows === true) return [takeBack({ key: id, ...place })];
  if (kind !== "thoughts") return [];
  const content = { "m.relates_to": { event_id: id }, reason: takenBackBecause };
  return [{ key: digest("taken back", id), ...place, kind: "withdrawal", content }];
}

/** Returns whether something was blanked: lines of texts that these turns have written, and that were not there before. */
async function blankFiles(
  mark: RedactionMark,
  turnIds: readonly number[],
  repeats: Repeats,
  { files }: BlankingParts,
): Promise<boolean> {
  let keys: readonly string[] | undefined;
  let blanked = false;
  for (const file of await files.since(mark)) {
    await giveWay();
    const found = await files.read(file, mark);
    if (!found || !repeats.in(found.text)) continue;
    const text = repeats.blankLines(found.text, new Set(found.before.split(/\r\n|[\r\n]/)));
    if (text === found.text) continue;
    keys ??= await files.writes(turnIds);
    if (!file.said && !keys.some((key) => digest(key, formatPath(file)) === file.writeKey)) continue;
    await files.replace(file, text);
    blanked = true;
  }
  return blanked;
}
