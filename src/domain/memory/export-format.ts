import { z } from "zod";
import { UserError } from "../../base/lib/errors.ts";
import { isUserId } from "../../base/lib/matrix-id.ts";
import { problemsOf } from "../../base/lib/problems.ts";
import { storableJson } from "../../base/lib/storable.ts";
import type { PortableFile, PortableMemory } from "../tables/memory-export.ts";

/** Version of the format; another one is refused. */
const exportVersion = 1;
const exportName = "clevernet memory";

/** First line of an export. */
export interface ExportHeader {
  readonly agent: string;
  /** Name of the homeserver. */
  readonly server: string;
  readonly at: string;
  /** Lines of either kind that follow. */
  readonly memories: number;
  readonly files: number;
  /** Memories and files that not everybody in the room of the export may read. */
  readonly keptBack: number;
}

/** An export as it is read. */
export interface MemoryExport {
  readonly header: ExportHeader;
  readonly memories: readonly PortableMemory[];
  readonly files: readonly PortableFile[];
}

/** Limits of a file that is imported. */
const linesMost = 50_000;
const textMost = 8_000;
const fileMost = 262_144;
const dayMs = 86_400_000;

const oneLine = (most: number) =>
  z
    .string(`a text of one line, of ${most} characters at most`)
    .max(most)
    .regex(/^[^\n\r]*$/, "a text of one line");
const orNull = <Schema extends z.ZodType>(schema: Schema) => schema.nullable().default(null);
const names = ["NOW.md", "LOG.md", "facts.json"] as const;
const kinds = ["observation", "action", "thought", "summary", "fact"] as const;

const headerSchema = z.object({
  type: z.literal(exportName),
  version: z.number(),
  agent: oneLine(255).default("?"),
  server: oneLine(255).default("?"),
  at: oneLine(40).default("?"),
  memories: z.int("a whole number").min(0, "0 or more"),
  files: z.int("a whole number").min(0, "0 or more"),
  keptBack: z.int("a whole number").min(0, "0 or more").default(0),
});

const memorySchema = z.strictObject({
  type: z.literal("memory"),
  id: oneLine(200).min(1, "an id"),
  kind: z.enum(kinds, `one of ${kinds.join(", ")}`),
  at: z.iso.datetime({ message: "a time such as 2026-03-01T12:00:00Z" }),
  room: orNull(oneLine(255)),
  event: orNull(oneLine(255)),
  sender: orNull(z.string("a user id").refine(isUserId, "a user id such as @you:example.org").max(255)),
  speaker: orNull(oneLine(255)),
  tool: orNull(oneLine(100)),
  text: z.string("a text").min(1, "a text").max(textMost, `at most ${textMost} characters`),
  importance: z.number("a number from 0 to 1").min(0, "a number from 0 to 1").max(1, "a number from 0 to 1"),
  shareable: z.boolean("true or false").default(false),
  taint: z.array(z.string("a text"), "a list of texts").default([]),
  fact: orNull(oneLine(1_000)),
});

const fileSchema = z.strictObject({
  type: z.literal("file"),
  room: orNull(oneLine(255)),
  name: z.enum(names, `one of ${names.join(", ")}`),
  text: z.string("a text").refine((text) => Buffer.byteLength(text) <= fileMost, `at most ${fileMost} bytes`),
  tainted: z.boolean("true or false").default(false),
});

/** Writes an export: a header, then a line for each memory, the oldest first, and for each working file. */
export const writeExport = ({ header, memories, files }: MemoryExport): string =>
  [
    { type: exportName, version: exportVersion, ...header },
    ...memories.map((memory) => ({ type: "memory", ...memory })),
    ...files.map((file) => ({ type: "file", ...file })),
  ]
    .map((line) => `${JSON.stringify(line)}\n`)
    .join("");

/**
 * Reads an export.
 * @param now nothing may be from a later time
 * @throws UserError that names the line, and says what is wrong with it
 */
export function readExport(text: string, now: Date): MemoryExport {
  const lines = text.replace(/^\uFEFF/, "").split("\n");
  while (lines.at(-1)?.trim() === "") lines.pop();
  const header = readHeader(lines[0] ?? "");
  if (lines.length > linesMost)
    throw new UserError(
      `The file has ${lines.length} lines, at most ${linesMost} are taken. Cut it into several files.`,
    );
  const memories: PortableMemory[] = [];
  const files: PortableFile[] = [];
  const lineOf = new Map<string, number>();
  for (const [index, line] of lines.entries()) {
    if (index === 0) continue;
    const value = jsonIn(line, index);
    if (typeOf(value) === "file") {
      const { type: _, ...file } = check(fileSchema, value, index);
      files.push(storableJson(file));
      continue;
    }
    const { type: _, ...memory } = check(memorySchema, value, index);
    if (Date.parse(memory.at) > now.getTime() + dayMs) throw badLine(index, `at: ${memory.at} has not come yet`);
    const before = lineOf.get(memory.id);
    if (before !== undefined) throw badLine(index, `id: line ${before} has it already`);
    lineOf.set(memory.id, index + 1);
    memories.push(storableJson(memory));
  }
  if (memories.length !== header.memories || files.length !== header.files) {
    const found = `${memories.length} memories and ${files.length} files`;
    throw new UserError(
      `The file is not whole: its first line says ${header.memories} memories and ${header.files} files, and there are ${found}.`,
    );
  }
  return { header, memories, files };
}

function readHeader(line: string): ExportHeader {
  const value = line.startsWith("{") ? jsonIn(line, 0) : undefined;
  if (typeOf(value) !== exportName)
    throw new UserError("This is no export of an agent's memory: its first line does not say so. `!export` makes one.");
  const { version, type: _, ...header } = check(headerSchema, value, 0);
  if (version !== exportVersion)
    throw new UserError(
      `The export has version ${version} of the format, and this program reads version ${exportVersion}. Nothing was imported.`,
    );
  return header;
}

const typeOf = (value: unknown): unknown => (value as { type?: unknown } | null | undefined)?.type;

function jsonIn(line: string, index: number): unknown {
  try {
    return JSON.parse(line);
  } catch {
    throw badLine(index, "it is no JSON");
  }
}

function check<Schema extends z.ZodType>(schema: Schema, value: unknown, index: number): z.output<Schema> {
  const { success, data, error } = schema.safeParse(value);
  if (success) return data;
  throw badLine(index, problemsOf(error, value)[0]?.line ?? "it cannot be read");
}

const badLine = (index: number, why: string): UserError =>
  new UserError(`Line ${index + 1} cannot be imported: ${why}. Nothing was imported.`);
