import type { ResultPart, ServerAnswer } from "../../adapters/mcp/link.ts";
import { UserError } from "../../base/lib/errors.ts";
import { isObject } from "../../base/lib/json.ts";
import { toStorable } from "../../base/lib/storable.ts";
import { visible } from "../../base/lmml/visible.ts";
import { contentOf, extensionOf, type FileContent } from "../../domain/files/content.ts";
import { folderHere, formatPath } from "../../domain/files/path.ts";
import type { ToolContext, ToolOutcome } from "./tool.ts";

const textMost = 64_000;
const fileBytesMost = 10_000_000;
const filesMost = 20;

/** Name of a server's text among untrusted texts. */
export const serverTaint = (server: string): string => `mcp:${server}`;

type Saver = Pick<ToolContext, "agent" | "files" | "key" | "roomId">;

/** Answer of a server as the result of an operation: text as it is, files in the folder of the conversation. */
export async function outcomeOf(answer: ServerAnswer, server: string, saver: Saver): Promise<ToolOutcome> {
  const texts: string[] = [];
  const images: { label: string; bytes: Buffer }[] = [];
  let saved = 0;
  for (const part of answer.parts) {
    const found = readPart(part);
    if ("text" in found) texts.push(found.text);
    else if (saved === filesMost) texts.push("(one more file, which is not kept)");
    else {
      saved += 1;
      const content = await contentOf(found.name, found.bytes);
      texts.push(await save(found, content, `${server}-${saved}`, saver));
      if (content.contentType.startsWith("image/")) images.push({ label: `image ${saved}`, bytes: found.bytes });
    }
  }
  // Servers that give values give them as a text, too.
  if (texts.length === 0 && answer.structured !== undefined) texts.push(JSON.stringify(answer.structured));
  const text = cut(visible(toStorable(texts.join("\n"))) || "(nothing)");
  return {
    result: answer.isError ? `The server ${server} says that this failed:\n${text}` : text,
    isVerbatim: true,
    taint: [serverTaint(server)],
    images,
  };
}

interface FoundFile {
  readonly bytes: Buffer;
  /** Name of its content, for its extension. */
  readonly name: string;
}

/** Parts of a result as one text; of files it says what they are. */
export const textOfParts = (parts: readonly ResultPart[]): string =>
  parts
    .map((part) => {
      const found = readPart(part);
      return "text" in found ? found.text : `(a file of ${found.bytes.length} bytes)`;
    })
    .join("\n");

/** Reads a part of a result. Nothing that it names is fetched. */
function readPart(part: ResultPart): FoundFile | { readonly text: string } {
  const { type, data, resource } = part;
  if (type === "text") return { text: wordOf(part.text) };
  if ((type === "image" || type === "audio") && typeof data === "string")
    return { bytes: Buffer.from(data, "base64"), name: type };
  if (type === "resource_link")
    return { text: `Link: ${[part.uri, part.name, part.description].map(wordOf).filter(Boolean).join(" ")}` };
  if (type !== "resource" || !isObject(resource)) return { text: `(something of the type ${wordOf(type)})` };
  if (typeof resource.text === "string") return { text: `${wordOf(resource.uri)}:\n${resource.text}` };
  if (typeof resource.blob !== "string") return { text: wordOf(resource.uri) };
  return { bytes: Buffer.from(resource.blob, "base64"), name: lastPart(wordOf(resource.uri)) };
}

const wordOf = (value: unknown): string => (typeof value === "string" ? value : "");
const lastPart = (uri: string): string => uri.split(/[/\\]/).at(-1) ?? "";

/** @param name of the file that is made, without what makes it unique */
async function save(found: FoundFile, content: FileContent, name: string, saver: Saver): Promise<string> {
  const { bytes } = found;
  const { agent, files, key, roomId } = saver;
  if (bytes.length > fileBytesMost) return `(a file of ${bytes.length} bytes: more than ${fileBytesMost} are not kept)`;
  const plain = key.replace(/[^A-Za-z0-9]/g, "").slice(-12);
  const path = `${formatPath(folderHere(agent.name, roomId))}/mcp/${name}-${plain}.${extensionOf(found.name, content)}`;
  try {
    const written = await files.write(path, bytes, { isTainted: true });
    return `File: ${files.named(written.path)} (${written.contentType}, ${written.size} bytes)`;
  } catch (error) {
    if (!(error instanceof UserError)) throw error;
    return `(a file that could not be kept: ${error.message})`;
  }
}

const cut = (text: string): string =>
  text.length <= textMost
    ? text
    : `${text.slice(0, textMost).toWellFormed()}\n(cut: ${text.length - textMost} more characters)`;
