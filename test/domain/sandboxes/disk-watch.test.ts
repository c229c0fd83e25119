import { beforeEach, expect, it } from "vitest";
import type { WorkspaceSize } from "../../../src/adapters/sandbox/host.ts";
import type { Runner } from "../../../src/adapters/sandbox/runner.ts";
import { silentLog } from "../../../src/base/lib/log.ts";
import { DiskWatch, type DiskWatchParts } from "../../../src/domain/sandboxes/disk-watch.ts";
import type { HostPool } from "../../../src/domain/sandboxes/host-pool.ts";
import type { SandboxRow } from "../../../src/domain/tables/sandboxes.ts";
import { fixedClock } from "../../support/fixed-clock.ts";

const megabyte = 1 << 20;
const limits = { freeMegabytes: 1_000, freeFiles: 1_000, workspaceMegabytes: 800, workspaceFiles: 8_000 };
let room: { bytes: number; files: number | null };
let sizes: Map<string, WorkspaceSize>;
let measured: number;
let stopped: string[];
let said: string[];
let clock: ReturnType<typeof fixedClock>;
let watch: DiskWatch;

beforeEach(() => {
  room = { bytes: 5_000 * megabyte, files: null };
  sizes = new Map(["one", "two"].map((name) => [name, { bytes: megabyte, files: 10 }]));
  [measured, stopped, said, clock] = [0, [], [], fixedClock()];
  const measure = async (name: string) => {
    measured++;
    return sizes.get(name);
  };
  const pool = { all: [{ name: "here", host: { measure } }] } as unknown as HostPool;
  const runner = { disk: async () => room } as unknown as Runner;
  const parts: DiskWatchParts = {
    sandboxes: {
      pool,
      runnersOn: () => [runner],
      stopGreedy: async ({ name }) => {
        stopped.push(name);
        return true;
      },
    },
    table: { awakeOn: async () => ["one", "two"].map((name) => ({ name, host: "here" }) as SandboxRow) },
    limits,
    tell: async (_, text) => void said.push(text),
    clock,
    log: silentLog,
  };
  watch = new DiskWatch(parts);
});

it("measures workspaces only when the disk has much less room, or after a while", async () => {
  await watch.round();
  room.bytes -= 150 * megabyte;
  await watch.round();
  expect(measured).toBe(0);
  room.bytes -= 50 * megabyte;
  await watch.round();
  expect(measured).toBe(2);
  await watch.round();
  expect(measured).toBe(2);
  clock.advance(600_001);
  await watch.round();
  expect(measured).toBe(4);
  expect(stopped).toEqual([]);
});

it("counts from the most room that there was since it has measured", async () => {
  await watch.round();
  room.bytes += 100 * megabyte;
  await watch.round();
  room.bytes -= 200 * megabyte;
  await watch.round();
  expect(measured).toBe(2);
});

it("stops one that is too large, and one that was so again only when it grows", async () => {
  await watch.round();
  sizes.set("two", { bytes: 900 * megabyte, files: 10 });
  clock.advance(600_001);
  await watch.round();
  expect(stopped).toEqual(["two"]);
  expect(said).toEqual([expect.stringContaining("its files take 900 MB in 10 files, and may take 800 MB")]);
  sizes.set("two", { bytes: 901 * megabyte, files: 10 });
  clock.advance(600_001);
  await watch.round();
  expect(stopped).toEqual(["two"]);
  sizes.set("two", { bytes: 910 * megabyte, files: 10 });
  clock.advance(600_001);
  await watch.round();
  expect(stopped).toEqual(["two", "two"]);
});

it("stops who has grown most while an almost full disk fills, one in a round", async () => {
  room = { bytes: 900 * megabyte, files: null };
  await watch.round();
  await watch.round();
  expect(stopped).toEqual([]);
  sizes.set("one", { bytes: 60 * megabyte, files: 10 });
  room = { bytes: 840 * megabyte, files: null };
  await watch.round();
  expect(stopped).toEqual(["one"]);
  expect(said[0]).toContain("the disk of its machine is almost full");
  await watch.round();
  expect(stopped).toEqual(["one"]);
});

it("knows that there can be no room for files, too", async () => {
  room = { bytes: 5_000 * megabyte, files: 1_500 };
  await watch.round();
  sizes.set("two", { bytes: 2 * megabyte, files: 700 });
  room = { bytes: 5_000 * megabyte, files: 800 };
  await watch.round();
  expect(stopped).toEqual(["two"]);
});
