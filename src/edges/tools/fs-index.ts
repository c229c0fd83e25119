import { z } from "zod";
import { isWebAddress, unwrapped } from "../../base/lib/web-address.ts";
import { indexedMost } from "../../domain/files/as-knowledge.ts";
import { isPermitted } from "../../engine/operations/gate.ts";
import { entriesText, knowFile, knowPage } from "../../engine/operations/knowing.ts";
import { defineTool } from "../../engine/operations/tool.ts";

export const tool = defineTool({
  name: "FS_Index",
  set: "core",
  command: "index",
  aliases: ["file_index"],
  examples: ["report.md", "https://example.org/handbook"],
  topic: "files",
  description: "Keeps the sections of a text file, or of a page of the web, as knowledge.",
  help: "Cuts a text file, or a page of the web, into sections and keeps each as knowledge of the agent. Kept again, it takes the place of what was kept of it. If you may not create anything, it only counts the sections.",
  wording: "Keep {path} as knowledge",
  kind: "read",
  runsBeside: false,
  carries: ({ path }) => (isWebAddress(path) ? undefined : path),
  // As for BrowseWeb: to ask for an address is to send it.
  reachesOutside: async ({ path }, { addresses, agent, roomId }) =>
    isWebAddress(path) && !(await addresses.isKnown({ agent: agent.name, roomId }, path)),
  isRepeatable: true,
  paths: ["path"],
  isPathLast: true,
  input: z.object({
    path: z.string().trim().overwrite(unwrapped).min(1).max(4_000).meta({
      description: "A path, or an address",
      help: "The file: notes.md in this room, or share:/path; or the address of a page",
    }),
  }),
  async run({ path }, context) {
    const page = isWebAddress(path) ? await knowPage(path, context) : undefined;
    const { entries, isCut, keep } = page ?? (await knowFile(path, context));
    const from = page ? "the beginning" : `the first ${indexedMost} characters`;
    const what = `${isCut ? `${from} of ` : ""}${page ? path : context.files.named(path)}`;
    const count = entriesText(entries);
    const taint = page?.taint ?? [];
    if (!(await isPermitted("create", context))) {
      return { result: `${what} would make ${count}. None was made: you may not create anything here.`, taint };
    }
    await keep();
    return { result: `${what} made ${count}.`, taint };
  },
});
