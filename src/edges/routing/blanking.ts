import type { Json } from "../../adapters/database/connection.ts";
import { giveWay } from "../../base/lib/clock.ts";
import { digest, HOME, type RoomId, type UserId } from "../../base/lib/ids.ts";
import { isObject } from "../../base/lib/json.ts";
import { blank, Repeats } from "../../base/lib/repeats.ts";
import type { Events } from "../../domain/tables/events.ts";
import type { OutboxDraft } from "../../domain/tables/outbox.ts";
import type { Piece } from "../../domain/tables/pieces.ts";
import type { RedactionMark, RedactionMarks, Witness } from "../../domain/tables/redaction-marks.ts";
import type { WrittenFiles } from "../../domain/tables/written-files.ts";
import type { Approvals } from "../../engine/operations/approvals.ts";
import { blankJson } from "../../engine/sight/blanked.ts";
import { blankFileTexts, FileNames } from "./file-blanking.ts";
import { takeBack, takenBackBecause } from "./redactions.ts";

export interface BlankingParts {
  readonly approvals: Pick<Approvals, "withdrawBlanked">;
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
 * it. What they have said stays in its room, and is blanked where agents are shown it; whoever may have read it there,
 * or in a file, is looked through as well. Safe to repeat.
 */
export async function blankRepetitions(mark: RedactionMark, parts: BlankingParts): Promise<Pass> {
  const { events, marks } = parts;
  // Again, for what did not see the redaction and was written after it.
  const { shown } = await events.redact(mark.eventId);
  const outbox = shown.map(takeBack);
  let isBlanked = false;
  for (let next = { ...mark, places: await marks.spread(mark, []) }; ; ) {
    const looked = await blankOnce(next, parts);
    outbox.push(...looked.outbox);
    isBlanked ||= looked.isBlanked || looked.reached.size > 0;
    const places = await marks.spread(mark, [...looked.reached]);
    if (places.length === next.places.length) {
      await looked.names.blank();
      const isElsewhere = places.length > 1;
      if (isBlanked || isElsewhere)
        await marks.emptyRenders(
          looked.witnesses.map(({ id }) => id),
          places,
        );
      return { open: looked.witnesses.filter(({ isOpen }) => isOpen).map(({ id }) => id), outbox };
    }
    next = { ...next, places };
  }
}

interface Looked {
  readonly witnesses: readonly Witness[];
  readonly outbox: readonly OutboxDraft[];
  readonly isBlanked: boolean;
  /** Places in which what agents said or wrote repeated the words. */
  readonly reached: ReadonlySet<RoomId>;
  readonly names: FileNames;
}

/** Looks through all that may have been made from what stands in the places known so far. */
async function blankOnce(mark: RedactionMark, parts: BlankingParts): Promise<Looked> {
  const { approvals, marks, files } = parts;
  const repeats = new Repeats([{ salt: mark.eventId, prints: mark.prints }]);
  const witnesses = await marks.witnesses(mark);
  const ids = witnesses.map(({ id }) => id);
  const outbox: OutboxDraft[] = [];
  const reached = new Set<RoomId>();
  let isBlanked = false;
  const blankAll = async (pieces: readonly Piece[]): Promise<void> => {
    const changed: Piece[] = [];
    for (const [index, piece] of pieces.entries()) {
      const blankedOne = blankedPiece(piece, repeats);
      if (blankedOne) changed.push(blankedOne);
      if (index % piecesAtOnce === 0) await giveWay();
    }
    if (changed.length === 0) return;
    // Before they are blanked: afterwards nobody could tell that it has to be withdrawn.
    for (const { id, kind, texts } of changed)
      if (kind === "operations") await approvals.withdrawBlanked(Number(id), texts);
    await marks.blank(mark, changed);
    outbox.push(...changed.flatMap(takenBackFor));
    for (const { kind, texts } of changed) if (kind === "events") reached.add(texts.roomId as RoomId);
    isBlanked = true;
  };
  for (let from = 0; from < ids.length; from += turnsAtOnce)
    await blankAll(await marks.piecesOfTurns(ids.slice(from, from + turnsAtOnce)));
  const heardIn = await marks.heardIn(mark, ids);
  await blankAll(await marks.piecesAround(mark, whereabouts(mark, witnesses, heardIn)));
  const search = { mark, turnIds: ids, repeats, files };
  const names = await FileNames.find(search);
  for (const place of [...(await blankFileTexts(search)), ...names.places]) reached.add(place);
  return { witnesses, outbox, isBlanked, reached, names };
}

const whereabouts = ({ places }: RedactionMark, witnesses: readonly Witness[], heardIn: readonly RoomId[]) => ({
  agents: [...new Set(witnesses.map(({ agent }) => agent))],
  rooms: [...new Set([...places, ...witnesses.map(({ roomId }) => roomId), ...heardIn])]
    .filter((id) => id !== HOME)
    .slice(0, roomsMost),
});

/** The piece with what is to be written of it; undefined where it repeats nothing. */
function blankedPiece(piece: Piece, repeats: Repeats): Piece | undefined {
  const { kind, texts } = piece;
  switch (kind) {
    case "windows":
    case "knowledge":
    case "offers":
    case "interactions":
      return Object.values(texts).some((text) => typeof text === "string" && repeats.in(text)) ? piece : undefined;
    case "attachments":
    case "thoughts":
      return typeof texts.text === "string" && repeats.in(texts.text) ? piece : undefined;
    case "events": {
      const content = blankedMessage(texts.content as Content, repeats);
      return content && { ...piece, texts: { ...texts, content } };
    }
    default: {
      const changed = Object.entries(texts).flatMap(([name, value]) => {
        const blanked = blankJson(value, repeats);
        return JSON.stringify(blanked) === JSON.stringify(value) ? [] : [[name, blanked] as const];
      });
      return changed.length > 0 ? { ...piece, texts: Object.fromEntries(changed) } : undefined;
    }
  }
}

type Content = Piece["texts"];

/** Content of a message or a reaction with its texts blanked, also of an edit; what it is and belongs to stays. */
function blankedMessage(content: Content, repeats: Repeats): Content | undefined {
  const { format: _, formatted_body: __, ...plain } = content;
  const { body, filename, "m.new_content": edit } = content;
  const relation = content["m.relates_to"] as Content | undefined;
  const repeatsIt = (text: unknown) => typeof text === "string" && repeats.in(text);
  const newContent = isObject(edit) ? blankedMessage(edit as Content, repeats) : undefined;
  const blanked: Content = {
    ...((newContent || repeatsIt(body)) && { body: blank }),
    ...(newContent && { "m.new_content": newContent as Json }),
    ...(repeatsIt(filename) && { filename: blank }),
    ...(isObject(relation) && repeatsIt(relation.key) && { "m.relates_to": { ...relation, key: blank } as Json }),
  };
  return Object.keys(blanked).length > 0 ? { ...plain, ...blanked } : undefined;
}

/** Takes messages back that showed it: of the thoughts room, and attachments that show a turn. */
function takenBackFor({ id, kind, texts }: Piece): OutboxDraft[] {
  const place = { roomId: texts.roomId as RoomId, sender: texts.sender as UserId };
  if (kind === "attachments" && texts.shows === true) return [takeBack({ key: id, ...place })];
  if (kind !== "thoughts") return [];
  const content = { "m.relates_to": { event_id: id }, reason: takenBackBecause };
  return [{ key: digest("taken back", id), ...place, kind: "withdrawal", content }];
}
