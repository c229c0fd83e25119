import { readdir, readFile } from "node:fs/promises";

const texts = new URL("../../app/shipped/", import.meta.url);

/** Texts that the share `system:` has before anybody writes to it, by path: guides and sub-agents. */
export async function loadShipped(): Promise<Map<string, string>> {
  const folders = await Promise.all(["guides", "subagents"].map(textsOf));
  return new Map(folders.flat());
}

async function textsOf(folder: string): Promise<(readonly [string, string])[]> {
  const url = new URL(`${folder}/`, texts);
  const names = (await readdir(url)).filter((name) => name.endsWith(".md"));
  return Promise.all(
    names.map(async (name) => [`/${folder}/${name}`, await readFile(new URL(name, url), "utf8")] as const),
  );
}
