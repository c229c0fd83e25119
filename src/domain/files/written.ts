/** Result of a write. */
export interface Written {
  readonly path: string;
  readonly contentType: string;
  readonly version: number;
  /** Bytes. */
  readonly size: number;
}
