import { afterAll, beforeAll, expect, it } from "vitest";
import { serverSettings, serversSection } from "../../../src/app/config/servers.ts";
import { webSection, webSettings } from "../../../src/app/config/web.ts";
import type { CheckSetting } from "../../../src/app/operator/check-finding.ts";
import { checkServers } from "../../../src/app/operator/check-servers.ts";
import { listed, ToolServer } from "../../support/tool-server.ts";

let server: ToolServer;
beforeAll(async () => {
  server = await ToolServer.start();
});
afterAll(() => server.stop());

const findings = async (mcp: object, allow: string[] = [server.door]) => {
  const found = [];
  const web = webSettings(webSection.parse({ allow }));
  const config = { web, mcp: serverSettings(serversSection.parse(mcp)) };
  for await (const finding of checkServers({ config } as unknown as CheckSetting)) found.push(finding);
  return found;
};

it("no server has to be configured", async () => expect(await findings({})).toEqual([]));

it("tells of each server what it has, or why it does not answer", async () => {
  server.tools = [listed("find"), listed("find"), listed("write")];
  expect(await findings({ wiki: { url: server.url }, away: { url: "http://127.0.0.1:9/mcp" } })).toEqual([
    {
      id: "mcp",
      state: "ok",
      says: "wiki answers: 2 tools; 1 more cannot be used (!mcp show wiki says why).",
    },
    {
      id: "mcp",
      state: "warning",
      says: expect.stringMatching(/^away does not answer: .*web\.allow/),
      remedy: expect.stringContaining("mcp.away in config.yaml"),
    },
  ]);
  server.tools = [];
  expect((await findings({ wiki: { url: server.url } }))[0]).toMatchObject({ state: "warning" });
});
