import { afterAll, beforeAll, expect, it } from "vitest";
import { webSection, webSettings } from "../../../src/app/config/web.ts";
import type { CheckSetting } from "../../../src/app/operator/check-finding.ts";
import { checkWeb } from "../../../src/app/operator/check-web.ts";
import { LocalWeb } from "../../support/web.ts";

let web: LocalWeb;
beforeAll(async () => {
  web = await LocalWeb.start();
});
afterAll(() => web.stop());

const findings = async (section: object) => {
  const found = [];
  const config = { web: webSettings(webSection.parse(section)) };
  for await (const finding of checkWeb({ config } as CheckSetting)) found.push(finding);
  return found;
};
const searxng = () => findings({ search: { url: web.url("") } });

it("nothing has to be configured", async () =>
  expect(await findings({})).toEqual([
    { id: "web", state: "ok", says: "agents may open pages." },
    { id: "web-search", state: "ok", says: "no service is configured: agents cannot search the web." },
  ]));

it("a service that is paid is not asked", async () => {
  const [pages, search] = await findings({ pages: "off", search: { provider: "exa", apiKey: "k", url: web.url("") } });
  expect(pages?.says).toContain("web.pages is off");
  expect(search).toMatchObject({ state: "ok", says: expect.stringContaining("exa is configured") });
  expect(web.asked).toEqual([]);
});

it("a SearXNG is asked, and says what its operator has to do", async () => {
  web.serveResults({ url: "https://a.example/", title: "a", content: "b" });
  expect((await searxng())[1]).toMatchObject({ state: "ok", says: "SearXNG gives results (1)." });
  web.pages.set("/search", { status: 403, body: "Forbidden" });
  expect((await searxng())[1]).toMatchObject({
    state: "warning",
    says: expect.stringContaining("write json below search.formats in its settings.yml"),
  });
  web.pages.set("/search", { body: JSON.stringify({ results: [], unresponsive_engines: [["bing", "timeout"]] }) });
  expect((await searxng())[1]).toMatchObject({ state: "warning", says: expect.stringContaining("bing timeout") });
});
