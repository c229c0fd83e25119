import { mkdir, readdir, readFile, rename, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { execa } from "execa";
import { UserError } from "../../src/base/lib/errors.ts";
import { secret } from "../../src/base/lib/ids.ts";

/** Debian's unstable release: it has PostgreSQL 18 with pgvector 0.8. */
const suite = "sid";
const packages = ["postgresql-18", "postgresql-18-pgvector"];
const debian = "http://deb.debian.org/debian";
/** Not everybody who may call chroot and mmdebstrap has their folder in the path. */
export const withAdminPath = { PATH: `${process.env.PATH}:/usr/sbin:/sbin`, LC_ALL: "C.UTF-8" };
export const binaries = "/usr/lib/postgresql/18/bin";

/** Why PostgreSQL cannot be run by the tests on this machine; undefined where it can. */
export async function postgresHindrance(): Promise<string | undefined> {
  const remedy = "set TEST_POSTGRES_URL to a PostgreSQL 16 or newer with pgvector, as a user who may create databases";
  if (process.platform !== "linux" || process.getuid?.() !== 0) return `not root on Linux: ${remedy}`;
  const { failed } = await execa("mmdebstrap", ["--version"], { reject: false });
  return failed ? `mmdebstrap is not installed (apt-get install mmdebstrap), or ${remedy}` : undefined;
}

/**
 * A folder with a small Debian that has PostgreSQL 18 and pgvector, to chroot into; below it `/template`, a fresh
 * cluster. Fetched once, which takes about half a minute.
 */
export async function installPostgres(cacheDir: string, onProgress: (text: string) => void): Promise<string> {
  const root = join(cacheDir, "postgres-18");
  if (await exists(root)) return root;
  onProgress("fetching PostgreSQL 18 from Debian (once, about half a minute) ...");
  const making = `${root}.${secret(4)}`;
  await mkdir(cacheDir, { recursive: true });
  try {
    const options = [
      "--quiet",
      "--variant=minbase",
      '--aptopt=Acquire::Check-Valid-Until "false"',
      "--dpkgopt=path-exclude=/usr/share/doc/*",
      "--dpkgopt=path-exclude=/usr/share/man/*",
      `--include=${packages.join(",")}`,
    ];
    const { failed, stderr } = await execa("mmdebstrap", [...options, suite, making, await debianMirror()], {
      reject: false,
      stdin: "ignore",
      env: withAdminPath,
    });
    if (failed) throw new UserError(`PostgreSQL cannot be fetched from Debian: ${stderr.trim().slice(-1000)}`);
    await mkdir(join(making, "data"));
    await mkdir(join(making, "template"));
    const initdb = `chown postgres /template && exec setpriv --reuid=postgres --regid=postgres --clear-groups ${binaries}/initdb \
      --pgdata=/template --username=postgres --auth=trust --encoding=UTF8 --locale-provider=builtin --locale=C.UTF-8 --no-sync`;
    await execa("chroot", [making, "sh", "-c", initdb], { env: withAdminPath });
    await rename(making, root);
  } catch (error) {
    await rm(making, { recursive: true, force: true });
    if (!(await exists(root))) throw error;
  }
  return root;
}

const exists = (path: string): Promise<boolean> =>
  stat(path).then(
    () => true,
    () => false,
  );

/** The mirror from which this machine gets its own release; Debian's own where it is no Debian. */
async function debianMirror(): Promise<string> {
  const osRelease = await readFile("/etc/os-release", "utf8").catch(() => "");
  const codename = /^ID=debian$/m.test(osRelease) && /^VERSION_CODENAME=(\S+)/m.exec(osRelease)?.[1];
  if (!codename) return debian;
  const folder = "/etc/apt/sources.list.d";
  const files = (await readdir(folder).catch(() => [])).map((name) => join(folder, name));
  for (const file of [...files, "/etc/apt/sources.list"]) {
    const text = await readFile(file, "utf8").catch(() => "");
    for (const stanza of text.split(/\n\s*\n/)) {
      const uri = /^URIs:\s*(\S+)/m.exec(stanza)?.[1];
      const suites = /^Suites:(.*)/m.exec(stanza)?.[1]?.trim().split(/\s+/) ?? [];
      if (uri && suites.includes(codename)) return uri;
    }
    const line = new RegExp(`^deb\\s+(?:\\[.*?\\]\\s+)?(\\S+)\\s+${codename}\\s`, "m").exec(text)?.[1];
    if (line) return line;
  }
  return debian;
}
