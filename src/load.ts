import { readdir, readFile } from "node:fs/promises";

/** One file, one thing: every module of a folder gives its export of this name. */
export async function loadAll<Thing>(folder: string, name: string): Promise<Thing[]> {
  const url = new URL(`./${folder}/`, import.meta.url);
  const files = (await readdir(url)).filter((file) => file.endsWith(".ts")).sort();
  const modules = await Promise.all(
    files.map((file) => import(new URL(file, url).href) as Promise<Record<string, Thing>>),
  );
  return modules.map((module, index) => {
    const thing = module[name];
    if (!thing) throw new Error(`${folder}/${files[index]} has no export \`${name}\``);
    return thing;
  });
}

/** What `system:` has before anybody writes to it: text by path. */
export async function loadShipped(): Promise<Map<string, string>> {
  const folders = await Promise.all(["guides", "subagents"].map(textsOf));
  return new Map(folders.flat());
}

async function textsOf(folder: string): Promise<(readonly [string, string])[]> {
  const url = new URL(`./${folder}/`, import.meta.url);
  const names = (await readdir(url)).filter((name) => name.endsWith(".md"));
  return Promise.all(
    names.map(async (name) => [`/${folder}/${name}`, await readFile(new URL(name, url), "utf8")] as const),
  );
}
