import { readdir } from "node:fs/promises";

/** One file, one thing: every module of a folder of `edges` gives its export of this name. */
export async function loadAll<Thing>(folder: string, name: string): Promise<Thing[]> {
  const url = new URL(`../../edges/${folder}/`, import.meta.url);
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
