import { fileTypeFromBuffer } from "file-type";
import { charset, extension, lookup } from "mime-types";
import { toStorable } from "../../base/lib/storable.ts";
import { folderType } from "../tables/files.ts";

export type FileContent =
  | { readonly contentType: string; readonly text: string; readonly binary: null }
  | { readonly contentType: string; readonly text: null; readonly binary: Uint8Array };

export const isFolder = ({ contentType }: { readonly contentType: string }): boolean => contentType === folderType;
const unknownType = "application/octet-stream";

/** Content is text wherever it can be: what it looks like counts, and its name only where it is text. */
export async function contentOf(name: string, content: string | Uint8Array): Promise<FileContent> {
  if (typeof content === "string") return textOf(name, toStorable(content));
  const sniffed = await fileTypeFromBuffer(content);
  const text = sniffed && sniffed.mime !== "application/xml" ? undefined : decode(content);
  if (text !== undefined) return textOf(name, text);
  return { contentType: sniffed?.mime ?? unknownType, text: null, binary: content };
}

/** The extension for a name of this content: that of the given name where the content is of its kind. */
export const extensionOf = (name: string, { contentType, text }: FileContent): string => {
  const own = /\.([A-Za-z0-9]{1,8})$/.exec(name)?.[1]?.toLowerCase() ?? "";
  const named = lookup(own);
  if (text !== null) return named && isTextType(named) ? own : "txt";
  const fits = named === contentType || contentType === unknownType;
  return (fits ? own : "") || extension(contentType) || "bin";
};

const textOf = (name: string, text: string): FileContent => ({ contentType: textTypeOf(name), text, binary: null });

/** The type of a text in a file of this name. */
export const textTypeOf = (name: string): string => {
  const named = lookup(name);
  return named && isTextType(named) ? named : "text/plain";
};

/** True if content of this type is text; some formats of text are registered as `application/` or `image/`. */
export const isTextType = (type: string): boolean =>
  charset(type) === "UTF-8" || /[/+](?:json|xml|yaml|toml|sql|javascript|x-sh)$/.test(type);

const decode = (bytes: Uint8Array): string | undefined => {
  try {
    const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
    return text.includes("\0") ? undefined : text;
  } catch {
    return undefined;
  }
};
