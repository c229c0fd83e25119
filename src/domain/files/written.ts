import type { EventId, RoomId } from "../../base/lib/ids.ts";
import type { FileInfo, OldVersion } from "../tables/files.ts";

/** Result of a write. */
export interface Written {
  readonly path: string;
  readonly contentType: string;
  readonly version: number;
  /** Bytes. */
  readonly size: number;
}

export interface FileStat extends FileInfo {
  readonly versions: readonly OldVersion[];
}

export interface WriteOptions {
  /** Version that the writer has read: no other is overwritten. 0: there may be no file. */
  readonly expected?: number | undefined;
  /** The event that the content came with. */
  readonly eventId?: EventId | null | undefined;
  /** True if the content comes from a tainted file. */
  readonly isTainted?: boolean | undefined;
  /** See `FileInfo`; without them, those of all that the operation was shown. */
  readonly sources?: readonly RoomId[] | undefined;
  /** See `FileWrite`. */
  readonly isPutAside?: boolean | undefined;
  /** See `FileWrite`. */
  readonly place?: number | undefined;
}
