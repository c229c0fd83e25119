// npm leaves optional packages for other platforms out of the lock file where the registry lacks them, and npm ci
// then refuses it. Run after npm install on such a machine: it writes their names and versions back.
import { readFileSync, writeFileSync } from "node:fs";

const file = "package-lock.json";
const systems = ["android", "darwin", "freebsd", "linux", "openharmony", "win32"];
const processors = ["arm64", "riscv64", "s390x", "ppc64", "ia32", "x64", "arm"];

/** What the name of a platform's package says: `@img/sharp-linuxmusl-arm64`. */
const platformOf = (name) => {
  const platform = name.split("/").pop();
  const os = systems.find((one) => platform.includes(one));
  const cpu = processors.find((one) => platform.includes(`-${one}`));
  if (platform.includes("musl")) return { os, cpu, libc: "musl" };
  return { os, cpu, libc: os === "linux" && platform.includes("gnu") ? "glibc" : undefined };
};

/** An entry as npm writes it for a package that it does not install here. */
const entryOf = (name, version, parent) => {
  const { os, cpu, libc } = platformOf(name);
  return {
    version,
    ...(cpu && { cpu: [cpu] }),
    ...(parent.dev && { dev: true }),
    ...(libc && { libc: [libc] }),
    license: parent.license,
    optional: true,
    ...(os && { os: [os] }),
  };
};

const lock = JSON.parse(readFileSync(file, "utf8"));
const { packages } = lock;
const added = {};
for (const [path, parent] of Object.entries(packages)) {
  for (const [name, version] of Object.entries(parent.optionalDependencies ?? {})) {
    if (packages[`${path}/node_modules/${name}`] || packages[`node_modules/${name}`]) continue;
    added[`node_modules/${name}`] = entryOf(name, version, parent);
    console.log(`${name} ${version}`);
  }
}
const inOrder = Object.entries({ ...packages, ...added }).sort(([a], [b]) => (a < b ? -1 : 1));
writeFileSync(file, `${JSON.stringify({ ...lock, packages: Object.fromEntries(inOrder) }, undefined, 2)}\n`);
