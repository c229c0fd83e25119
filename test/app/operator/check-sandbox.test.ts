import { expect, it } from "vitest";
import { sandboxSection, sandboxSettings } from "../../../src/app/config/sandbox.ts";
import type { CheckSetting } from "../../../src/app/operator/check-finding.ts";
import { checkSandbox } from "../../../src/app/operator/check-sandbox.ts";
import { systemClock } from "../../../src/base/lib/clock.ts";

const findings = async (section: object) => {
  const config = { sandbox: sandboxSettings(sandboxSection.parse(section)) };
  const found = [];
  for await (const finding of checkSandbox({ config, clock: systemClock } as CheckSetting)) found.push(finding);
  return found;
};

it("nothing fails without Podman: the finding says what is missing, and what to install", async () =>
  expect(await findings({ podman: "/no/such/podman" })).toEqual([
    {
      id: "sandbox",
      state: "warning",
      says: "podman: it does not answer: there is no program /no/such/podman.",
      remedy:
        "Install Podman 4.3 or newer (Debian: apt-get install podman), or set sandbox.podman to its path. Until then agents cannot run commands; everything else works.",
    },
  ]));

it("nobody looks for Podman where sandboxes are off", async () =>
  expect(await findings({ kind: "off", podman: "/no/such/podman" })).toEqual([
    { id: "sandbox", state: "ok", says: "it is off: agents cannot run commands." },
  ]));
