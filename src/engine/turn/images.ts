import { forModel, readImage } from "../../adapters/images/image.ts";
import type { ShownImage } from "../../adapters/model/images.ts";
import type { EventId } from "../../base/lib/ids.ts";
import type { ToolOutcome } from "../operations/tool.ts";
import type { CarriedMedia } from "../sight/media.ts";
import type { TurnState } from "./state.ts";

/** Images that a model is shown in one step: the newest. */
const imagesMost = 4;
/** Longest wait of a step for files that came with the events that it shows. */
const patienceMs = 10_000;
const lookEveryMs = 100;

/** Waits once for the files of these events. Returns whether there was something to wait for. */
export async function awaitMedia(state: TurnState, pending: readonly EventId[]): Promise<boolean> {
  const { clock, media } = state.mind;
  const awaited = pending.filter((eventId) => !state.awaited.has(eventId));
  if (awaited.length === 0) return false;
  for (const eventId of awaited) state.awaited.add(eventId);
  const started = clock.monotonic();
  while (clock.monotonic() - started < patienceMs && (await media.areWaiting(awaited))) {
    await clock.sleep(lookEveryMs, state.signal);
  }
  return true;
}

/** The images that a step shows: those that were fresh in any step of the turn and are still there. */
export async function imagesFor(state: TurnState, { images }: CarriedMedia): Promise<ShownImage[]> {
  if (!state.agent.settings.images) return [];
  const shown = images.filter(({ eventId, isFresh }) => isFresh || state.images.has(eventId)).slice(-imagesMost);
  const unread = shown.filter(({ eventId }) => !state.images.has(eventId));
  if (unread.length > 0) {
    const contents = await state.mind.media.contents(unread.map(({ eventId }) => eventId));
    for (const { eventId, path } of unread) {
      const bytes = contents.get(eventId);
      state.images.set(eventId, bytes && (await shownImage(path, bytes)));
    }
  }
  return [...shown.flatMap(({ eventId }) => state.images.get(eventId) ?? []), ...state.givenImages.slice(-imagesMost)];
}

/** Takes note of the images that a call has given, for the steps that follow. */
export async function takeImages(state: TurnState, { images = [] }: Pick<ToolOutcome, "images">): Promise<void> {
  if (!state.agent.settings.images) return;
  for (const { label, bytes } of images) {
    const image = await shownImage(label, bytes);
    if (image) state.givenImages.push(image);
  }
}

async function shownImage(path: string, bytes: Uint8Array): Promise<ShownImage | undefined> {
  const image = await readImage(Buffer.from(bytes));
  const small = image && (await forModel(image));
  return small && { label: path, contentType: small.contentType, base64: small.bytes.toString("base64") };
}
