import { expect, it } from "vitest";
import type { HostFinding, SandboxSpec } from "../../../src/adapters/sandbox/host.ts";
import { silentLog } from "../../../src/base/lib/log.ts";
import { SelfTest } from "../../../src/domain/sandboxes/self-test.ts";
import { fixedClock } from "../../support/fixed-clock.ts";

const spec = {} as SandboxSpec;
const missing: HostFinding = { point: "image", state: "missing", says: "there is none.", remedy: "Make it." };
const there: HostFinding = { point: "image", state: "ok", says: "it is there." };

it("a test that has failed is repeated after a pause, until it is passed", async () => {
  let finding = missing;
  let tests = 0;
  const check = async function* () {
    tests++;
    yield finding;
  };
  const clock = fixedClock();
  const test = new SelfTest({ host: { check }, spec, clock, log: silentLog });
  expect(test.refusal).toBeUndefined();
  await expect(test.pass()).rejects.toThrow("image: there is none. Make it");
  finding = there;
  await expect(test.pass()).rejects.toThrow("image: there is none. Make it");
  clock.advance(60_000);
  expect(test.refusal).toContain("Make it");
  await test.pass();
  expect(test.refusal).toBeUndefined();
  clock.advance(60_000);
  await test.pass();
  expect(tests).toBe(2);
});

it("where there are to be none, nothing is tested", async () => {
  const test = new SelfTest({ host: undefined, spec, clock: fixedClock(), log: silentLog });
  await expect(test.pass()).rejects.toThrow("sandbox.kind is off");
});
