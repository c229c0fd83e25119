import { expect, it } from "vitest";
import { formatPath } from "../../../src/domain/files/path.ts";
import { tool } from "../../../src/edges/tools/fs-stat.ts";
import type { ToolContext } from "../../../src/engine/operations/tool.ts";

it("FS_Stat says of an old version when it was written, and when it was replaced", async () => {
  const [first, second] = [new Date("2026-01-01T10:00:00Z"), new Date("2026-01-02T10:00:00Z")];
  const stat = {
    share: "agents",
    path: "/a.md",
    contentType: "text/markdown",
    version: 2,
    size: 3,
    owner: "@ann:test",
    isTainted: false,
    createdAt: first,
    updatedAt: second,
    versions: [{ version: 1, size: 2, writtenAt: first, endedAt: second }],
  };
  const context = { files: { named: formatPath, stat: async () => stat } } as unknown as ToolContext;
  const { result } = await tool.run({ path: "agents:/a.md" }, context, "read");
  expect(result).toMatch(/^kept version 1: .*, written 2026-01-01T10:00:00Z, replaced 2026-01-02T10:00:00Z$/m);
});
