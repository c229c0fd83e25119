import { readImage } from "../../adapters/images/image.ts";
import { readAttachment } from "../../adapters/matrix/attachment.ts";
import { HomeserverError, type MatrixClient } from "../../adapters/matrix/client.ts";
import { download, TooLarge } from "../../adapters/matrix/download.ts";
import { BadFile, decryptFile } from "../../adapters/matrix/encrypted-file.ts";
import { messageOf } from "../../base/lib/errors.ts";
import { digest } from "../../base/lib/ids.ts";
import { contentOf, extensionOf } from "../../domain/files/content.ts";
import { mediaName } from "../../domain/files/media-name.ts";
import { findStrangers } from "../../domain/rights/trust.ts";
import type { Media, ToFetch } from "../../domain/tables/media.ts";
import type { Uploads } from "../../domain/tables/uploads.ts";
import type { Mind } from "../../engine/turn/mind.ts";

const megabyte = 1_048_576;
/** Files that are fetched side by side: each may be as large as a file can be. */
const atOnce = 3;
/** One fetch takes no longer; the homeserver asks others for what it does not have. */
const fetchMs = 60_000;
/** 1, 2, 4 … seconds between attempts: the last comes about a quarter of an hour after the first. */
const attemptsMost = 10;
/** For what a process left behind that died, and for what another one could not tell us of. */
const passEveryMs = 60_000;

export interface MediaKeeperParts extends Pick<Mind, "media" | "files" | "botUserId" | "rights" | "clock" | "log"> {
  readonly client: Pick<MatrixClient, "access">;
  readonly uploads: Pick<Uploads, "forgetOld">;
  /** Larger files are not taken. */
  readonly maxMegabytes: number;
}

/** Fetches the files that events carry and keeps them as files of their rooms, beside the routing of events. */
export class MediaKeeper {
  readonly #parts: MediaKeeperParts;
  readonly #stopped = new AbortController();
  #working: Promise<unknown> = Promise.resolve();
  #nudged = Promise.withResolvers<void>();

  constructor(parts: MediaKeeperParts) {
    this.#parts = parts;
  }

  /** A file waits to be fetched. */
  nudge(): void {
    this.#nudged.resolve();
    this.#nudged = Promise.withResolvers();
  }

  /** Takes up what was left, then whatever comes. */
  start(): void {
    void this.#pass();
    this.#working = Promise.all(Array.from({ length: atOnce }, () => this.#work()));
  }

  /** Breaks off what is being fetched: the next start fetches it again. */
  async stop(): Promise<void> {
    this.#stopped.abort();
    this.nudge();
    await this.#working;
  }

  async #pass(): Promise<void> {
    while (!this.#stopped.signal.aborted) {
      await this.#parts.clock.sleep(passEveryMs, this.#stopped.signal).catch(() => {});
      this.nudge();
      await this.#parts.uploads.forgetOld().catch((error: unknown) => this.#parts.log.warn(messageOf(error)));
    }
  }

  async #work(): Promise<void> {
    while (!this.#stopped.signal.aborted) {
      const nudged = this.#nudged.promise;
      try {
        const next = await this.#parts.media.take();
        if (next) await this.#fetch(next);
        else await nudged;
      } catch (error) {
        if (this.#stopped.signal.aborted) return;
        this.#parts.log.error({ err: error }, `a file of a room is fetched later: ${messageOf(error)}`);
        await nudged;
      }
    }
  }

  async #fetch(next: ToFetch): Promise<void> {
    const { clock, media, log } = this.#parts;
    try {
      await media.settle(next.eventId, await this.#keep(next));
    } catch (error) {
      if (this.#stopped.signal.aborted) return;
      const reason = refusal(error, next.attempts);
      if (reason !== undefined) {
        log.info({ room: next.roomId, event: next.eventId }, `a file is not kept: ${reason}`);
        return media.settle(next.eventId, { state: "missing", reason });
      }
      const pause = (error instanceof HomeserverError && error.retryAfterMs) || 1_000 * 2 ** (next.attempts - 1);
      log.info({ room: next.roomId, event: next.eventId, pause }, `a file is fetched later: ${messageOf(error)}`);
      await media.putBack(next.eventId, pause);
      void clock.sleep(pause, this.#stopped.signal).then(
        () => this.nudge(),
        () => {},
      );
    }
  }

  async #keep({ eventId, roomId, type, content, sender }: ToFetch): Promise<Media> {
    const { client, files, maxMegabytes } = this.#parts;
    const store = files.stores.rooms;
    if (!store) throw new Error("the share rooms: is not there");
    const attachment = readAttachment({ type, content });
    if (attachment?.url === undefined) return { state: "missing", reason: "it was taken away" };
    const limits = { ms: fetchMs, bytes: maxMegabytes * megabyte };
    const given = await download(client.access, attachment.url, limits, this.#stopped.signal);
    const bytes = attachment.keys ? decryptFile(given, attachment.keys) : given;
    const found = await contentOf(attachment.name, bytes);
    const image = found.contentType.startsWith("image/") ? await readImage(bytes) : undefined;
    const path = `/${roomId}/media/${mediaName(attachment.name, eventId, extensionOf(attachment.name, found))}`;
    const { state } = await store.write({
      share: "rooms",
      path,
      contentType: found.contentType,
      text: found.text,
      binary: found.binary,
      owner: sender,
      eventId,
      isTainted: (await findStrangers([sender], this.#parts)).length > 0,
      key: digest("media", eventId),
      limits: files.limits,
    });
    if (state === "full") return { state: "missing", reason: "the files of this room take all the space they may" };
    if (state !== "written") return { state: "missing", reason: `it cannot be written: ${state}` };
    return {
      state: "kept",
      path: `rooms:${path}`,
      contentType: found.contentType,
      bytes: bytes.length,
      ...(image && { width: image.width, height: image.height }),
    };
  }
}

/** Why a file will not come; undefined: it may, later. */
const refusal = (error: unknown, attempts: number): string | undefined => {
  if (error instanceof TooLarge || error instanceof BadFile) return error.message;
  if (error instanceof HomeserverError && error.isFinal) return `the homeserver does not give it: ${error.status}`;
  if (attempts < attemptsMost) return undefined;
  return error instanceof HomeserverError ? "the homeserver does not give it" : "it could not be read";
};
