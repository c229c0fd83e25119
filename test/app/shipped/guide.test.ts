import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import type { RoomId } from "../../../src/base/lib/ids.ts";
import { guideTitle } from "../../../src/base/prompt/chat-interface.ts";
import { functionCall } from "../../../src/base/prompt/ephemeris.ts";
import { layout as layoutAs } from "../../../src/base/prompt/layout.ts";
import type { World } from "../../../src/base/prompt/types.ts";
import { busyWorld, exampleWorld } from "../../base/prompt/worlds.ts";

const layout = (world: World) => layoutAs(world, "seed");

const guide = readFileSync(new URL("../../../src/app/shipped/guides/clevernet.md", import.meta.url), "utf8");

test("the guide is short enough to be read in every step", () => {
  expect(guide.length).toBeGreaterThan(2_500);
  expect(guide.length).toBeLessThan(5_000);
});

test("the guide needs no escaping", () => {
  const { system } = layout({ ...exampleWorld, guides: [{ title: guideTitle("matrix.org"), text: guide }] });
  expect(system).toContain(`<agentGuide title="Clevernet Matrix System on matrix.org">${guide}</agentGuide>`);
});

test("every name in the guide stands in what an agent is shown", () => {
  const window = {
    windowId: "file_1",
    srcType: "file" as const,
    src: "agents:/a.txt",
    contentType: "text/plain",
    isClosed: false,
    ...{
      lines: 1,
      chars: 1,
      shown: "a",
      top: 1,
      isTruncated: false,
      isRaw: true,
      state: "normal" as const,
      isPinned: false,
    },
    ...{ isSystem: false, isTainted: true, closesIn: 2, hasAutorefresh: true, isRefreshable: true, queries: [] },
  };
  const { system, user } = layout({
    ...busyWorld,
    windows: [window],
    agent: { ...busyWorld.agent, persona: exampleWorld.agent.persona, mode: "create" },
  });
  const turn = { ...busyWorld.turn, entries: [functionCall("c2", "compute_k3f9", {}, 17)] };
  const mind: Partial<World> = {
    recalled: [
      {
        ...{
          kind: "knowledge",
          roomId: "!a:matrix.org" as RoomId,
          eventId: null,
          number: null,
          sender: busyWorld.agent.userId,
        },
        ...{ at: busyWorld.now, text: "a", score: 1 },
        passage: { source: "user", firstLine: 1, lastLine: 2, isOutdated: true },
      },
    ],
    state: { status: { text: "a", chars: 1, isTainted: false }, activity: undefined },
  };
  const lean = layoutAs({ ...busyWorld, ...mind, turn, log: { entries: [], leftOut: new Set() } }, "cacheable").user;
  const cut = layout({ ...busyWorld, ephemeris: [], charsMax: 4_000, guides: [{ title: "t", text: guide.repeat(3) }] });
  const shown = `${system}${user}${lean}${cut.system} room_ timer content ‹U+202E›`;
  const names = [...guide.matchAll(/`([^`]+)`/g)].map(([, name = ""]) => name);
  expect(names.length).toBeGreaterThan(20);
  expect(names.filter((name) => !shown.includes(name))).toEqual([]);
});
