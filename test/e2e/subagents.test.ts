import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { errandOf, subAgentOf } from "../support/errand.ts";
import { eventually } from "../support/poll.ts";
import { newMessages, type Step, toolName, userText } from "../support/scripted-model.ts";
import { answer, callsOf, remindersOf } from "../support/sight.ts";
import { Stage } from "../support/stage.ts";
import type { Message, TestUser } from "../support/user.ts";

describe("sub-agents", () => {
  let stage: Stage;
  /** May do everything with agents; is the agent's owner. */
  let ann: TestUser;
  let admin: TestUser;
  let room: string;
  let adminRoom: string;
  /** True while the model hangs at a sub-agent's line `wait`. */
  let waits = true;

  beforeAll(async () => {
    stage = await Stage.set({
      database: "postgres",
      agents: { helper: { mode: "create", owner: "@ann:clevernet.test" } },
      permissions: { "@admin:clevernet.test": "admin", "@ann:clevernet.test": "operate" },
    });
    // Sub-agents obey: each line of a request is one call, `TOOL JSON`; in the end they tell what came of them.
    stage.model.on(
      (request) => subAgentOf(request) !== "",
      (request): Step[] => {
        const { request: lines, results } = errandOf(request);
        const line = lines.split("\n").filter((each) => each !== "wait" || waits)[results.length];
        if (line === "wait") return ["I think.", { hangs: true }];
        const [, tool = "", json = ""] = /^(\S+) (.*)/.exec(line ?? "") ?? [];
        return line === undefined
          ? [`${subAgentOf(request).toUpperCase()} SAYS ${results.join(" + ")}`]
          : [`I call ${tool}.`, { call: toolName(request, tool), arguments: json }];
      },
    );
    // The agent obeys: `do 1 NAME` and the lines below it are handed to a sub-agent, and what that says is said.
    stage.model.on(/\bdo \d+ /, (request) => {
      const words = newMessages(request).findLast(({ body }) => /\bdo \d+ /.test(body))?.body ?? "";
      const [, number, subAgent = "", lines = ""] = /\bdo (\d+) (\w+)\n?(.*)/s.exec(words) ?? [];
      const [call] = callsOf(request);
      return call
        ? answer(request, `RESULT ${number}: ${call.result}`)
        : { call: toolName(request, "delegate"), arguments: { subAgent, request: lines } };
    });
    stage.model.on("well?", (request) => answer(request, "well."));
    await stage.bridge.start();
    [ann, admin] = await Promise.all([stage.user("ann"), stage.user("admin")]);
    [room, adminRoom] = await Promise.all([stage.directRoom(ann), stage.directRoom(admin)]);
  });
  afterAll(() => stage.strike());

  const isAnswerTo =
    (id: string) =>
    ({ content }: Message) =>
      content["org.clevernet.command"] === id;
  /** Gives a command; returns the bridge's answer. */
  const command = async (line: string, { by = ann, where = room } = {}): Promise<string> =>
    (await by.waitForMessage(where, isAnswerTo(await by.say(where, line)))).body;
  const at = (name: string) => `rooms:/${room}/${name}`;
  let delegations = 0;
  const hand = async (subAgent: string, ...lines: string[]): Promise<number> => {
    const number = ++delegations;
    await ann.say(room, [`do ${number} ${subAgent}`, ...lines].join("\n"));
    return number;
  };
  const result = async (number: number): Promise<string> => {
    const start = `RESULT ${number}: `;
    return (await ann.waitForMessage(room, ({ body }) => body.startsWith(start))).body.slice(start.length);
  };
  /** Has a sub-agent make these calls; returns the result that the agent gets. */
  const delegate = async (subAgent: string, ...lines: string[]) => result(await hand(subAgent, ...lines));
  const requestsOf = (subAgent: string) => stage.model.requests.filter((request) => subAgentOf(request) === subAgent);

  it("the clerk finds and reads files, with nothing but file tools", async () => {
    await command(`!write ${at("tea.md")} Darjeeling, 12 euros`);
    const [find, read] = [{ glob: at("**/*.md") }, { path: at("tea.md") }];
    const told = await delegate("clerk", `FS_Find ${JSON.stringify(find)}`, `FS_Read ${JSON.stringify(read)}`);
    expect(told).toMatch(/^CLERK SAYS .*tea\.md.* \+ Darjeeling, 12 euros$/s);
    const [request] = requestsOf("clerk");
    expect(request?.body.tools.map(({ function: { name } }) => name.replace(/_[^_]+$/, "")).sort()).toEqual([
      "FS_Copy",
      "FS_Delete",
      "FS_Find",
      "FS_Grep",
      "FS_Index",
      "FS_MakeFolder",
      "FS_Move",
      "FS_Read",
      "FS_Stat",
      "FS_Summary",
      "FS_Tree",
      "FS_WriteFile",
    ]);
    expect(request && userText(request)).toContain(`<roomMember userId="${ann.id}" displayName="ann" />`);
  });

  it("the planner makes todos, which the agent is shown from then on", async () => {
    expect(await delegate("planner", 'todos_add {"name":"Ask Mia"}')).toContain("Ask Mia");
    await ann.say(room, "well?");
    const request = await stage.model.request("well?");
    expect(userText(request)).toContain("Ask Mia</todo>");
  });

  it("what one does is linked to the todo that it was asked for, and it is shown that", async () => {
    stage.model.on("for the todo", (request) =>
      callsOf(request).length > 0
        ? answer(request, "linked.")
        : {
            call: toolName(request, "delegate"),
            arguments: { subAgent: "clerk", todo: 1, request: `FS_Stat ${JSON.stringify({ path: at("tea.md") })}` },
          },
    );
    await ann.say(room, "for the todo");
    await ann.waitForMessage(room, ({ body }) => body === "linked.");
    expect(userText(requestsOf("clerk").at(-1) ?? fail())).toContain('<todo id="1">Ask Mia</todo>');
    const linked = await stage.query("select tool, sub_agent from operations where todo = 1 order by id");
    expect(linked).toEqual([
      { tool: "delegate", sub_agent: null },
      { tool: "FS_Stat", sub_agent: "clerk" },
    ]);
  });

  it("its thoughts and calls stand in the thoughts room under its name", async () => {
    const invited = () => ann.client.getRooms().find(({ name }) => name === "Thoughts of helper")?.roomId;
    const thoughts = await eventually(invited, { what: "an invitation to the thoughts room" });
    await ann.join(thoughts);
    const { body } = await ann.waitForMessage(thoughts, (message) => message.body.includes("I call FS_Read."));
    expect(body).toContain(`helper / clerk (${stage.agentId()}): I call FS_Read.`);
  });

  it("an approval is asked for by the one who needs it, and it goes on from there", async () => {
    await command(`!write ${at("old.md")} old`);
    const calls = requestsOf("clerk").length;
    const number = await hand("clerk", `FS_Delete ${JSON.stringify({ path: at("old.md") })}`);
    const card = await ann.waitForMessage(room, ({ content }) => "org.clevernet.operation" in content);
    await ann.react(room, card.id, "✅");
    expect(await result(number)).toMatch(/^CLERK SAYS .*old\.md/s);
    expect(requestsOf("clerk").length - calls).toBe(2);
    expect(await command(`!stat ${at("old.md")}`)).not.toMatch(/^version: /m);
  });

  it("a bridge that dies within one goes on within it: no call is paid for or made twice", async () => {
    const before = stage.model.requests.length;
    const number = await hand(
      "clerk",
      `FS_WriteFile ${JSON.stringify({ path: at("log.md"), content: "once. ", append: true })}`,
      "wait",
      `FS_Read ${JSON.stringify({ path: at("log.md") })}`,
    );
    await eventually(() => stage.model.requests.length === before + 3, { what: "the sub-agent to be waited for" });
    await stage.bridge.kill();
    waits = false;
    await stage.bridge.start();
    expect(await result(number)).toMatch(/^CLERK SAYS .* \+ once\.$/s);
    // Of the agent: to delegate, and to answer; of the clerk: to write, what was cut off, to read, and to answer.
    expect(stage.model.requests.slice(before).map(subAgentOf)).toEqual(["", "clerk", "clerk", "clerk", "clerk", ""]);
  });

  describe("of the admins", () => {
    const definition = (name: string, delegates: string) =>
      `---\nname: ${name}\ndescription: works as ${name}\ntools: [FS_Read]\ndelegates: [${delegates}]\n---\n\nYou are ${name}.`;
    const write = (name: string, text: string) =>
      command(`!write system:/subagents/${name}.md ${text}`, { by: admin, where: adminRoom });

    it("one that cannot be used is refused with the reason", async () => {
      expect(await write("clerk", definition("clerk", "").replace("FS_Read", "FS_Raed"))).toContain(
        "there is no tool FS_Raed: did you mean FS_Read?",
      );
      expect(await command(`!write system:/subagents/x.md ${definition("x", "")}`)).toContain("is closed here");
    });

    it("are there at once, three may work for each other, and a fourth is refused", async () => {
      for (const [name, next] of ["alpha beta", "beta gamma", "gamma alpha"].map((pair) => pair.split(" "))) {
        expect(await write(name ?? "", definition(name ?? "", next ?? ""))).toContain("was written");
      }
      const nested = ["beta", "gamma", "alpha"].reduceRight(
        (request, subAgent) => `delegate ${JSON.stringify({ subAgent, request })}`,
        "nothing",
      );
      expect(await delegate("alpha", nested)).toMatch(
        /^ALPHA SAYS BETA SAYS GAMMA SAYS delegate was not carried out: at most 3 sub-agents/,
      );
      const [request] = requestsOf("alpha");
      expect(request?.body.messages[0]?.content).toContain("- beta: works as beta\n</agentGuide>");
    });
  });

  it("a person's command to delegate is work for the agent, which answers in the room", async () => {
    stage.model.on("!delegate", (request) => {
      const [call] = callsOf(request);
      const words = newMessages(request).at(-1)?.body.split(" ") ?? [];
      return call
        ? answer(request, `AT COMMAND: ${call.result}`)
        : {
            call: toolName(request, "delegate"),
            arguments: { subAgent: words[1], request: words.slice(2).join(" ") },
          };
    });
    expect(await command("!delegate clark find it")).toContain("there is no sub-agent clark");
    expect(await command(`!delegate clerk FS_Read ${JSON.stringify({ path: at("tea.md") })}`)).toContain(
      "delegates it to clerk",
    );
    const { body } = await ann.waitForMessage(room, (message) => message.body.startsWith("AT COMMAND: "));
    expect(body).toBe("AT COMMAND: CLERK SAYS Darjeeling, 12 euros");
    const request = await stage.model.request("!delegate");
    expect(userText(request)).toContain("call the function delegate for the sub-agent clerk");
    expect(remindersOf(request).join()).not.toContain("clerk");
  });

  it("leave nothing unfinished, and nothing sent twice or out of order", () => stage.check());

  const fail = (): never => {
    throw new Error("there was no request");
  };
});
