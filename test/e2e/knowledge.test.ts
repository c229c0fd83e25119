import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { errandOf, subAgentOf } from "../support/errand.ts";
import { type ModelRequest, newMessages, type Step, toolName, userText } from "../support/scripted-model.ts";
import { answer, callsOf } from "../support/sight.ts";
import { Stage } from "../support/stage.ts";
import type { Message, TestUser } from "../support/user.ts";

const handbook = "# Boiler\n\nThe boiler is serviced by Tanner in May.\n\n# Garden\n\nThe hedge is cut in March.";

/** Memory and knowledge that the model is shown. */
const recalledIn = (request: ModelRequest): string =>
  /<ragResults>[\s\S]*<\/ragResults>/.exec(userText(request))?.[0] ?? "";

describe.each(["embedded", "postgres"] as const)("knowledge, on the %s database", (database) => {
  let stage: Stage;
  let ann: TestUser;
  let ben: TestUser;
  let own: string;
  let shared: string;

  beforeAll(async () => {
    stage = await Stage.set({
      database,
      agents: { helper: { owner: "@ann:clevernet.test", mode: "create" } },
      permissions: { "@ann:clevernet.test": "operate", "@ben:clevernet.test": "use" },
    });
    // Sub-agents obey: each line of a request is one call, `TOOL JSON`; in the end they tell what came of them.
    stage.model.on(
      (request) => subAgentOf(request) !== "",
      (request): Step[] => {
        const { request: lines, results } = errandOf(request);
        const [, tool = "", json = ""] = /^(\S+) (.*)/.exec(lines.split("\n")[results.length] ?? "") ?? [];
        return tool === ""
          ? [`${subAgentOf(request).toUpperCase()} SAYS ${results.join(" + ")}`]
          : [`I call ${tool}.`, { call: toolName(request, tool), arguments: json }];
      },
    );
    // So does the agent: `do 1 TOOL JSON` is called as it is written, and the result is said.
    stage.model.on(/\bdo \d+ /, (request) => {
      const words = newMessages(request).findLast(({ body }) => /\bdo \d+ /.test(body))?.body ?? "";
      const [, number, name = "", json = ""] = /\bdo (\d+) (\w+) (.*)/s.exec(words) ?? [];
      const [call] = callsOf(request);
      return call
        ? answer(request, `RESULT ${number}: ${call.result}`)
        : { call: toolName(request, name), arguments: json };
    });
    stage.model.on(
      (request) => request.body.tools.length === 0,
      () => "SUMMARY: Tanner looks after the boiler, and somebody cuts the hedge.",
    );
    stage.model.on("our boiler?", (request) => answer(request, `known: ${recalledIn(request).includes("Tanner")}`));
    await stage.bridge.start();
    [ann, ben] = await Promise.all([stage.user("ann"), stage.user("ben")]);
    own = await stage.directRoom(ann);
    shared = await stage.room(ann, [], ["helper"]);
  });
  afterAll(() => stage.strike());

  const isAnswerTo =
    (id: string) =>
    ({ content }: Message) =>
      content["org.clevernet.command"] === id;
  const command = async (line: string, { by = ann, where = own } = {}): Promise<string> =>
    (await by.waitForMessage(where, isAnswerTo(await by.say(where, line)))).body;
  let calls = 0;
  const call = async (tool: string, input: object): Promise<string> => {
    await ann.say(own, `do ${++calls} ${tool} ${JSON.stringify(input)}`);
    const result = `RESULT ${calls}: `;
    return (await ann.waitForMessage(own, ({ body }) => body.startsWith(result))).body.slice(result.length);
  };
  const heard = new Set<string>();
  /** Asks about the boiler; returns what the agent knew. */
  const ask = async (by: TestUser, where: string): Promise<string> => {
    await by.mention(where, stage.agentId(), "Who looks after our boiler?");
    const isNew = ({ body, id }: Message) => body.startsWith("known: ") && !heard.has(id);
    const { body, id } = await by.waitForMessage(where, isNew);
    heard.add(id);
    return body;
  };

  it("of a file comes to mind where it fits, and is found with its source and lines", async () => {
    await command(`!write handbook.md ${handbook}`);
    expect(await ask(ann, shared)).toBe("known: false");
    expect(await command("!knowledge add --path *.md")).toContain("handbook.md: 2 entries of knowledge");
    expect(await ask(ann, shared)).toBe("known: true");
    const shown = recalledIn(stage.model.requests.at(-1) as ModelRequest);
    expect(shown).toContain(`source="fileChunk:rooms:/${own}/handbook.md[0]" lines="1-3"`);
    const found = await command("!knowledge search --limit 1 the boiler");
    expect(found).toMatch(/^```\n\d\.\d\d {2}fileChunk:\S+handbook\.md\[0\], lines 1-3 \(\d{4}-\d\d-\d\d\)\n# Boiler/);
    expect(await command("!knowledge sources")).toContain("handbook.md: 2 entries, ");
    expect(await command("!search --searchMode semantic . boiler")).toContain(
      "The boiler is serviced by Tanner in May.",
    );
  });

  it("is a sub-agent's affair, which has nothing but knowledge and files to read", async () => {
    const request = `knowledge_search {"query":"hedge","limit":1}`;
    expect(await call("delegate", { subAgent: "librarian", request })).toMatch(/^LIBRARIAN SAYS/);
    const errand = stage.model.requests.findLast((one) => subAgentOf(one) === "librarian");
    expect(JSON.stringify(errand?.body.messages)).toContain("The hedge is cut in March.");
    expect(errand?.body.tools.map(({ function: { name } }) => name.replace(/_[^_]+$/, "")).sort()).toEqual([
      ...["FS_Find", "FS_Grep", "FS_Read", "FS_Stat", "FS_Tree"],
      ...["knowledge_add", "knowledge_delete", "knowledge_search", "knowledge_sources"],
    ]);
  });

  it("is no more shown where somebody comes who may not read the file", async () => {
    await ann.invite(shared, ben.id);
    await ben.waitForMembership(shared, "invite");
    await ben.join(shared);
    await ann.waitForMembership(shared, "join", ben.id);
    expect(await ask(ann, shared)).toBe("known: false");
    expect(await ask(ben, shared)).toBe("known: false");
    const nothing = "There is no knowledge about it that everybody here may read.";
    expect(await command("!knowledge search boiler", { by: ben, where: shared })).toBe(nothing);
    expect(await command("!knowledge search boiler", { where: shared })).toBe(nothing);
    expect(await command("!knowledge sources", { where: shared })).not.toContain("handbook");
    expect(await command("!knowledge delete file", { where: shared })).toContain("No knowledge here comes from");
    expect(await command("!knowledge search boiler")).toContain("Tanner");
  });

  it("is a summary if a person puts a ✅ below it who may have it kept", async () => {
    await ann.invite(own, ben.id);
    await ben.waitForMembership(own, "invite");
    await ben.join(own);
    const told = `do ${++calls} FS_Summary ${JSON.stringify({ path: `rooms:/${own}/handbook.md` })}`;
    await ann.mention(own, stage.agentId(), told);
    const asks = ({ body }: Message) => body.includes("Shall I keep this summary");
    const question = await ann.waitForMessage(own, asks);
    expect(question.body).toMatch(/^SUMMARY: Tanner looks after the boiler/);
    const inSummaries = "!knowledge search --sourcePrefix fileSummary: hedge";
    await ben.react(own, question.id, "✅");
    expect(await command(inSummaries)).toContain("There is no knowledge");
    await ann.react(own, question.id, "✅️");
    await ann.waitForMessage(own, ({ body }) => body.includes(`Kept as knowledge by ${ann.id}`));
    expect(await command(inSummaries)).toContain("SUMMARY: Tanner looks after the boiler");
    const answered = await ann.waitForMessage(own, ({ body }) => body.startsWith(`RESULT ${calls}: `));
    expect(answered.body).toContain("people have been shown it and asked");
  });

  it("is asked about below the answer to a person's command, and not asked of people who may have nothing kept", async () => {
    const asked = await ann.say(own, "!summary handbook.md");
    await ann.waitForMessage(own, isAnswerTo(asked));
    const isQuestion = ({ body }: Message) => body.startsWith("**Shall I keep this summary of `handbook.md`");
    const question = await ann.waitForMessage(own, isQuestion);
    const ids = (await ann.messages(own)).map(({ id }) => id);
    const said = ann.heard(own).find(isAnswerTo(asked));
    expect(ids.indexOf(question.id)).toBeGreaterThan(ids.indexOf(said?.id ?? ""));
    expect(await command("!summary handbook.md", { by: ben })).toContain("[Not kept as knowledge]");
  });

  it("of a deleted file is not shown, and is deleted by a command at once", async () => {
    expect(await command("!knowledge delete handbook.md")).toBe("3 entries of knowledge are deleted.");
    expect(await command("!knowledge search boiler")).toContain("There is no knowledge");
    await command("!knowledge add --path handbook.md");
    expect(await command("!knowledge search boiler")).toContain("Tanner");
    await command("!rm handbook.md");
    expect(await command("!knowledge search boiler")).toContain("There is no knowledge");
    expect(await command("!knowledge sources")).toContain("its file was deleted");
  });

  it("of people is kept under a title, and replaced by it", async () => {
    await command("!knowledge add --title opening From nine to five.");
    await command("!knowledge add --title opening From ten to four.");
    await command("!knowledge add The lift is out of order.");
    expect(await command("!knowledge search Is it at ten?")).toContain("From ten to four.");
    const sources = await command("!knowledge sources");
    expect(sources).toContain("user: 1 entry, ");
    expect(sources).toContain("user:opening: 1 entry, ");
    expect(await command("!knowledge delete user")).toBe("2 entries of knowledge are deleted.");
  });
});
