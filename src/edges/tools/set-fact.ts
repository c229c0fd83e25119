import { z } from "zod";
import { factsText, parseFacts, salvageFacts } from "../../domain/files/facts.ts";
import { formatPath } from "../../domain/files/path.ts";
import { workingFile } from "../../domain/files/working-files.ts";
import { defineTool } from "../../engine/operations/tool.ts";

/** Importance of a fact: like that of an action. */
const factImportance = 0.7;

export const tool = defineTool({
  name: "set_fact",
  set: "memory",
  command: "fact",
  examples: ["language Danish", 'birthday "3 May"', 'language ""'],
  topic: "memory",
  hasNamedBehind: true,
  description:
    "Keeps one fact or preference of this room under a name, in facts.json; a new value replaces the former one. recall_memory finds it.",
  help: "Keeps a fact for the agent under a name, in its file facts.json of this room.",
  kind: "update",
  isOwn: true,
  isRepeatable: true,
  isLogged: false,
  input: z.object({
    key: z.string().trim().min(1).max(200).describe("Its name, such as language"),
    value: z.string().trim().max(4_000).describe("Its value; an empty one removes the fact"),
  }),
  async run({ key, value }, { agent, roomId, files }) {
    const path = formatPath(workingFile({ agent: agent.name, roomId }, "facts.json"));
    let isDamaged = false;
    await files.edit(path, (text) => {
      const known = parseFacts(text);
      isDamaged = known === undefined;
      const facts = new Map(known ?? salvageFacts(text));
      facts.delete(key);
      if (value !== "") facts.set(key, value);
      return factsText(facts);
    });
    const text = value === "" ? `${key} is not kept any more` : `${key}: ${value}`;
    const damage = isDamaged ? " It was no valid JSON: what could be read of it was kept." : "";
    return {
      result: `${files.named(path)} is written.${damage}`,
      kept: [{ kind: "fact", tool: "set_fact", text, importance: factImportance, factKey: key }],
    };
  },
});
