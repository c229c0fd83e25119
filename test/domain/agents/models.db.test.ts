import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, it } from "vitest";
import { parseAgentSettings } from "../../../src/domain/agents/settings.ts";
import { onEachDatabase } from "../../support/database.ts";
import { newKey } from "../../support/rows.ts";

const migration = join(import.meta.dirname, "../../../migrations/0032-models.sql");

onEachDatabase((database) => {
  /** The text of an agent.json once it was migrated. */
  const migrated = async (text: string): Promise<string> => {
    const path = `/${newKey().replace(" ", "")}/agent.json`;
    await database().sql`
      insert into files (share, path, owner, content_type, text_content) values ('agents', ${path}, '@me:test', 'application/json', ${text})`;
    const [rewrite = ""] = (await readFile(migration, "utf8")).split(";");
    await database().sql.unsafe(rewrite);
    const [row] = await database().sql<{ text: string }[]>`
      select text_content as text from files where path = ${path}`;
    return row?.text ?? "";
  };

  it("the submodel of an agent.json reads after the migration; the other fields stay in their order", async () => {
    const text = await migrated('{\n  "mode": "read",\n  "submodel": "other/fast",\n  "budget": { "usd": 1.50 }\n}');
    expect(text).toBe(
      '{\n  "mode": "read",\n  "models": {"read" : {"name" : "other/fast"}},\n  "budget": { "usd": 1.50 }\n}',
    );
    expect(parseAgentSettings(JSON.parse(text), "test").models).toEqual({ read: { name: "other/fast" } });
  });

  it("an agent.json without a submodel names no model after the migration", async () => {
    expect(await migrated('{"submodel": null}')).toBe("{}");
    expect(await migrated('{"submodel": null, "postPrompt": "{}"}')).toBe('{\n  "postPrompt": "{}"\n}');
  });

  it("a file that is no settings is left as it is by the migration", async () => {
    for (const text of ['{"submodel": ', '["submodel"]']) expect(await migrated(text)).toBe(text);
  });
});
