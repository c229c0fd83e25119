import { z } from "zod";
import { localTime } from "../../base/prompt/time.ts";
import type { SourceGroup } from "../../domain/tables/knowledge-query.ts";
import { readerFor } from "../../engine/operations/knowing.ts";
import { defineTool } from "../../engine/operations/tool.ts";

export const tool = defineTool({
  name: "knowledge_sources",
  set: "librarian",
  command: "knowledge sources",
  aliases: ["knowledge list"],
  topic: "memory",
  description: "Lists the sources of your knowledge, with size and age, and whether their files have changed since.",
  help: "Lists what the agent knows: each source with its size and age, and whether its file has changed since.",
  wording: "List the sources of the knowledge",
  kind: "read",
  isRepeatable: true,
  input: z.object({}),
  async run(_input, context) {
    const { agent, knowledge, level } = context;
    const found = await knowledge.sources(readerFor(context, level));
    if (found.length === 0) return { result: "There is no knowledge that everybody here may read." };
    return {
      result: found.map((group) => lineFor(group, agent.settings.timeZone)).join("\n"),
      isVerbatim: true,
      sources: found.flatMap(({ sources }) => sources),
      taint: found.flatMap(({ taint }) => taint),
    };
  },
});

const states = { current: [], outdated: ["its file has changed since"], gone: ["its file was deleted"] } as const;

const lineFor = ({ at, characters, entries, prefix, state, waiting }: SourceGroup, timeZone: string): string =>
  [
    `${prefix}: ${entries} ${entries === 1 ? "entry" : "entries"}`,
    `${characters} characters`,
    `of ${localTime(at, timeZone).slice(0, 16)}`,
    ...(waiting > 0 ? [`${waiting} found by words alone so far`] : []),
    ...states[state],
  ].join(", ");
