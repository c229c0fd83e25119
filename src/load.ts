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
  const folder = new URL("./guides/", import.meta.url);
  const names = (await readdir(folder)).filter((name) => name.endsWith(".md"));
  const entries = names.map(
    async (name) => [`/guides/${name}`, await readFile(new URL(name, folder), "utf8")] as const,
  );
  return new Map(await Promise.all(entries));
}
