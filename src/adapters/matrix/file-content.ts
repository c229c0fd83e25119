import type { FileKeys } from "./encrypted-file.ts";
import { withoutPreviews } from "./link-previews.ts";
import { relationTo, type ThreadPlace } from "./relation.ts";

interface Pixels {
  readonly width: number;
  readonly height: number;
}

interface SentFile {
  readonly name: string;
  readonly contentType: string;
  readonly bytes: number;
}

export interface FileMessage {
  readonly file: SentFile;
  /** Size of the file where it is an image that clients show. */
  readonly image?: Pixels | undefined;
  readonly thumbnail?: (Pixels & { readonly contentType: string; readonly bytes: Uint8Array }) | undefined;
  readonly caption?: string | undefined;
  readonly thread?: ThreadPlace | undefined;
  /** Content key, by which the message is found again. */
  readonly key: string;
}

/** A type of event content; the type and the index signature let it be kept as JSON. */
type Content = { readonly msgtype: string } & Record<string, JsonValue>;
type JsonValue = string | number | readonly JsonValue[] | { readonly [key: string]: JsonValue };

const kindOf = (contentType: string, image: Pixels | undefined): string => {
  if (image) return "m.image";
  const [kind] = contentType.split("/");
  return kind === "audio" || kind === "video" ? `m.${kind}` : "m.file";
};

/** The content of a message with a file, before the homeserver has it: `withUrls` completes it. */
export const fileContent = ({ file, image, thumbnail, caption, thread, key }: FileMessage): Content => ({
  msgtype: kindOf(file.contentType, image),
  body: caption ?? file.name,
  filename: file.name,
  info: {
    mimetype: file.contentType,
    size: file.bytes,
    ...(image && { w: image.width, h: image.height }),
    ...(thumbnail && {
      thumbnail_info: {
        mimetype: thumbnail.contentType,
        size: thumbnail.bytes.length,
        w: thumbnail.width,
        h: thumbnail.height,
      },
    }),
  },
  "m.mentions": {},
  // A caption may hold links, too.
  ...withoutPreviews,
  "org.clevernet.key": key,
  ...relationTo(thread),
});

/** A file that the homeserver has; with its keys where it is encrypted. */
interface UploadedFile {
  readonly url: string;
  readonly keys?: FileKeys | null | undefined;
}

/** The content with the addresses of its files. */
export const withUrls = (
  content: Readonly<Record<string, unknown>>,
  { file, thumbnail }: { readonly file: UploadedFile; readonly thumbnail?: UploadedFile | undefined },
): Record<string, unknown> => ({
  ...content,
  ...addressOf("", file),
  ...(thumbnail && { info: { ...(content.info as object), ...addressOf("thumbnail_", thumbnail) } }),
});

const addressOf = (prefix: string, { url, keys }: UploadedFile) =>
  keys ? { [`${prefix}file`]: { ...keys, url } } : { [`${prefix}url`]: url };
