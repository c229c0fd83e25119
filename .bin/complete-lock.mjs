// npm leaves optional packages for other platforms out of the lock file where the registry lacks them, and npm ci
// then refuses it. Run after npm install on such a machine: it writes their names and versions back.
import { readFileSync, writeFileSync } from "node:fs";
const lock = JSON.parse(readFileSync("package-lock.json", "utf8"));
const packages = lock.packages;
const added = [];
for (const [path, entry] of Object.entries({ ...packages })) {
  for (const [name, version] of Object.entries(entry.optionalDependencies ?? {})) {
    const nested = `${path}/node_modules/${name}`, top = `node_modules/${name}`;
    if (packages[nested] || packages[top]) continue;
    added.push([top, name, version, entry]);
  }
}
for (const [top, name, version, parent] of added) {
  const base = name.split("/").pop();
  const os = ["android","darwin","freebsd","linux","openharmony","win32"].find((o) => base.includes(o));
  const cpu = ["arm64","riscv64","s390x","ppc64","ia32","x64","arm"].find((c) => base.includes(`-${c}`));
  const libc = base.includes("musl") ? ["musl"] : os === "linux" && base.includes("gnu") ? ["glibc"] : undefined;
  console.log(name, version, os, cpu, libc);
  packages[top] = { version, ...(cpu ? { cpu: [cpu] } : {}), ...(parent.dev ? { dev: true } : {}), ...(libc ? { libc } : {}), license: parent.license, optional: true, ...(os ? { os: [os] } : {}) };
}
lock.packages = Object.fromEntries(Object.entries(packages).sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0)));
writeFileSync("package-lock.json", JSON.stringify(lock, undefined, 2) + "\n");
