import { expect, it } from "vitest";
import { loadAll } from "../../../src/app/start/load.ts";
import { setsTold } from "../../../src/domain/agents/settings.ts";
import { rehearsedStep } from "../../../src/edges/demo/rehearsal-script.ts";
import type { AnyTool } from "../../../src/engine/operations/tool.ts";
import { onEachDatabase } from "../../support/database.ts";
import type { ModelRequest, Step } from "../../support/scripted-model.ts";
import { Talk } from "../../support/talk.ts";
import { LocalWeb } from "../../support/web.ts";

/**
 * Uses of every tool, in this order: the name, its arguments as a person writes them, and a part of what is answered. A
 * number in braces is one that was shown before.
 */
const usesOf = (other: string, page: string): readonly [tool: string, asked: string, answered: RegExp][] => [
  ["compute", "javascript=6*7", /42/],
  ["FS_WriteFile", 'path=notes.md content="milk and honey"', /notes\.md/],
  ["FS_Read", "path=notes.md", /milk and honey/],
  ["FS_Stat", "path=notes.md", /version/],
  ["FS_Grep", "glob=**/*.md regex=(?i)HONEY", /milk and honey/],
  ["FS_Find", "glob=*.md limit=5", /notes\.md/],
  ["FS_Tree", "depth=2", /notes\.md/],
  ["FS_Search", "path=/ query=honey", /search_\d/],
  ["FS_OpenFile", "path=notes.md line=1", /file_\d/],
  ["Window_Action", "windowId=file_2 action=pin", /file_2/],
  ["FS_Summary", "path=notes.md", /rehearsal model/],
  ["FS_Index", "path=notes.md", /1/],
  ["FS_MakeFolder", "path=old", /old/],
  ["FS_Copy", "path=notes.md target=old/copy.md", /old\/copy\.md/],
  ["FS_Move", "glob=old/*.md target=older", /older\/copy\.md/],
  ["FS_Delete", "path=older recursive=true", /older/],
  ["SendFile", 'path=notes.md caption="the notes"', /sent/],
  ["React", "eventId={message id} key=👍", /👍/],
  ["TellAgent", `agent=${other} text="good morning"`, /is told/],
  ["SetAgentParameters", "wakeUpTimerSeconds=120", /120/],
  ["Schedule", 'at=2126-12-24T18:00 text="wake up"', /2126/],
  ["Schedule_List", "", /wake up/],
  ["Schedule_Remove", "id={schedule id}", /removed/],
  ["todos_add", 'name="buy milk"', /buy milk/],
  ["todos_list", "", /1 \[ \] buy milk/],
  ["todos_done", "id=1", /1 \[x\] buy milk/],
  ["todos_get", "id=1", /buy milk/],
  ["todos_remove", "id=1", /buy milk/],
  ["todos_replace", 'todos=["one", "two"]', /one.*two/s],
  ["todos_clear", "", /2/],
  ["delegate", 'subAgent=planner request="use todos_list"', /sub-agent answered/],
  ["update_status", 'new_status_text="sort the letters" next_step="open the first"', /NOW\.md|written|noted/i],
  ["log_activity", 'entry_type=THOUGHT content="the first letter is a bill"', /LOG\.md|noted/i],
  ["set_fact", "key=colour value=green", /colour|facts\.json/i],
  ["Remember", 'content="The spare key hangs behind the harpsichord"', /remember/i],
  ["recall_memory", "query=harpsichord", /^(?!.*query=harpsichord).*spare key/s],
  ["SemanticSearch", 'query="where is the spare key" limit=3', /harpsichord/],
  ["knowledge_add", 'text="Invoices go to the cellar office." title=invoices', /user:invoices/],
  ["knowledge_search", 'query="where do invoices go" limit=2', /cellar office/],
  ["knowledge_sources", "", /user:invoices/],
  ["knowledge_delete", "sourcePrefix=user:", /1 entry/],
  ["BrowseWeb", `url=${page}`, /page_\d/],
  ["WebSearch", "query=boats", /web_\d/],
  ["YouTube", "video=aaaaaaaaaaa captions=true", /video_\d/],
  ["Operation_Show", "number={functionResult operation}", /compute.*42/s],
];

onEachDatabase((database) => {
  it("an agent without any intelligence uses every tool by the names of its fields alone", async () => {
    let said = "";
    const reply = ({ body }: ModelRequest): Step[] => {
      const { text, call } = rehearsedStep(body);
      if (typeof call?.arguments.content === "string") said = call.arguments.content;
      return [...(text === undefined ? [] : [text]), ...(call ? [{ call: call.name, arguments: call.arguments }] : [])];
    };
    const fields = { mode: "delete" as const, tools: [...setsTold] };
    const web = await LocalWeb.start();
    const page = web.serve("/boats", "Boats", "");
    web.serveResults({ url: page, title: "Boats", content: "All about boats" });
    web.serveVideo({ playabilityStatus: { status: "OK" }, videoDetails: { title: "Boats" } }, "");
    const talk = await Talk.begin(database(), { fields, reply, web });
    const other = await Talk.begin(database(), { reply });
    const roomId = await talk.room(other.person);
    const uses = usesOf(other.agent.name, page);
    const answers: [string, string][] = [];
    for (const [tool, asked] of uses) {
      const shown = talk.calls.flatMap(({ texts }) => texts).join("\n");
      const numberOf = (_: string, name: string, attribute: string): string =>
        new RegExp(`<${name} [^>]*\\b${attribute}="(\\d+)"`).exec(shown)?.[1] ?? "none";
      await talk.ask(roomId, `use ${tool} ${asked.replace(/\{(\w+) (\w+)\}/, numberOf)}`);
      answers.push([tool, said]);
    }
    await Promise.all([talk.stop(), other.stop(), web.stop()]);
    // Where there is no Podman, there are no sandboxes: test/e2e/sandbox.test.ts uses their tools.
    const used = (await loadAll<AnyTool>("tools", "tool")).filter(({ set }) => set !== "sandbox");
    const names = used.map(({ name }) => name);
    expect([...new Set(["SendMessage", ...uses.map(([tool]) => tool)])].sort()).toEqual(names.sort());
    for (const [index, [tool, answer]] of answers.entries())
      expect([tool, answer]).toEqual([tool, expect.stringMatching(uses[index]?.[2] ?? /^$/)]);
    const states = await database().sql<{ tool: string; state: string; result: string }[]>`
      select tool, state, result from operations where agent = ${talk.agent.name} and state <> 'done'`;
    expect(states).toEqual([]);
  }, 120_000);
});
