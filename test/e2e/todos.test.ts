import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { all, textOf } from "../support/elements.ts";
import { eventually } from "../support/poll.ts";
import { type ModelRequest, newMessages, type Step, toolName, userText } from "../support/scripted-model.ts";
import { answer, callsOf, chatInterface } from "../support/sight.ts";
import { Stage } from "../support/stage.ts";
import type { Message, TestUser } from "../support/user.ts";

/** Todos that a request shows, as they were told last: `3 Buy milk`, `3 [done] Buy milk`. */
const todosIn = (request: ModelRequest): string[] => {
  const told = new Map(all(chatInterface(request), "todo").map((todo) => [todo.attributes.id, todo]));
  return [...told.values()]
    .filter(({ attributes }) => !attributes.removed)
    .map((todo) => `${todo.attributes.id} ${todo.attributes.done ? "[done] " : ""}${textOf(todo)}`);
};

describe("todos", () => {
  let stage: Stage;
  /** May command everything; may talk to agents. */
  let ann: TestUser;
  let ben: TestUser;
  /** Of Ann and the agent; of both and the agent. */
  let own: string;
  let shared: string;
  beforeAll(async () => {
    stage = await Stage.set({
      database: "postgres",
      agents: { helper: { tools: ["core", "planner"] } },
      permissions: {
        "@admin:clevernet.test": "admin",
        "@ann:clevernet.test": "operate",
        "@ben:clevernet.test": "chat",
      },
    });
    await stage.bridge.start();
    [ann, ben] = await Promise.all([stage.user("ann"), stage.user("ben")]);
    own = await stage.directRoom(ann);
    shared = await stage.room(ann, [ben], ["helper"]);
  });
  afterAll(() => stage.strike());

  const isReplyTo = (id: string) => (message: Message) => JSON.stringify(message.content).includes(id);
  /** Gives a command; returns the bridge's answer, without the fence of code. */
  const command = async (line: string, { by = ann, where = own } = {}): Promise<string> => {
    const { body } = await by.waitForMessage(where, isReplyTo(await by.say(where, line)));
    return body.replace(/^```\n|\n```$/g, "");
  };
  let turns = 0;
  /** A turn in which the agent makes these calls, one a step, and then answers. Returns its requests. */
  const turn = async (calls: readonly [tool: string, input: object][] = [], { by = ann, where = own } = {}) => {
    const question = `question ${++turns}.`;
    const isIts = (request: ModelRequest) => newMessages(request).some(({ body }) => body.includes(question));
    stage.model.on(isIts, (request): Step => {
      const next = calls[callsOf(request).length];
      if (!next) return answer(request, `answer to ${question}`);
      return { call: toolName(request, next[0]), arguments: next[1] };
    });
    await by.mention(where, stage.agentId(), question);
    const { id } = await by.waitForMessage(where, ({ body }) => body === `answer to ${question}`);
    const requests = stage.model.requests.filter((request) => userText(request).includes(question));
    const [first] = requests;
    const last = requests.at(-1);
    if (!first || !last) throw new Error("no request");
    return { first, last, id, results: callsOf(last).map(({ result }) => result) };
  };

  it("that a person adds are listed, and shown to the agent in each turn", async () => {
    expect(await command("!todo")).toBe("There are no todos.");
    expect(await command("!todo add Buy milk & <honey>")).toBe("1 [ ] Buy milk & <honey>");
    expect(await command("!todos_add Bake a cake")).toBe("2 [ ] Bake a cake");
    expect(await command("!todo list")).toBe("1 [ ] Buy milk & <honey>\n2 [ ] Bake a cake");
    expect(todosIn((await turn()).first)).toEqual(["1 Buy milk & <honey>", "2 Bake a cake"]);
  });

  it("that the agent adds and finishes are told in the next step of the same turn", async () => {
    const { last } = await turn([
      ["todos_add", { name: "Invite Mia" }],
      ["todos_done", { id: 1 }],
      ["todos_remove", { id: 2 }],
    ]);
    expect(todosIn(last)).toEqual(["1 [done] Buy milk & <honey>", "3 Invite Mia"]);
    expect(await command("!todo")).toBe("1 [x] Buy milk & <honey>\n3 [ ] Invite Mia");
  });

  it("know what was done for them, with results and messages", async () => {
    const file = `rooms:/${own}/guests.md`;
    const { id } = await turn([
      ["FS_WriteFile", { path: file, content: "Mia", todo: 3 }],
      ["FS_Read", { path: `rooms:/${own}/nothing.md`, todo: 3 }],
      ["SendMessage", { content: "Mia is invited", todo: 3 }],
    ]);
    const messages = await ann.messages(own);
    const said = messages.find(({ body }) => body === "Mia is invited")?.id ?? "";
    expect(id).not.toBe(said);
    const told = await command("!todo get 3");
    const link = `https://matrix.to/#/${encodeURIComponent(own)}/${encodeURIComponent(said)}`;
    for (const part of [
      "3 [ ] Invite Mia",
      `FS_WriteFile, done: \`${file}, Mia\``,
      "FS_Read, failed: ",
      `[message](${link})`,
    ])
      expect(told).toContain(part);
    expect(told).not.toContain(id.slice(1));
    const { results } = await turn([["todos_get", { id: 3 }]]);
    expect(results[0]).toContain(`message ${said} in ${own}`);
  });

  it("that people's commands are for know them, too", async () => {
    await command(`!stat --todo 3 rooms:/${own}/guests.md`);
    expect(await command("!todo get 3")).toContain("FS_Stat, done");
  });

  it("that are not open are told to whoever wants to do something for them", async () => {
    const refusal = (todo: number) => `FS_Tree was not carried out: todo: there is no open todo ${todo} here.`;
    const { results } = await turn([
      ["FS_Tree", { todo: 1 }],
      ["FS_Tree", { todo: 99 }],
    ]);
    expect(results).toEqual([refusal(1), refusal(99)]);
    expect(await command("!ls --todo 99")).toBe("Not done: todo: there is no open todo 99 here.");
  });

  it("belong to their conversation", async () => {
    expect(await command("!todo", { where: shared })).toBe("There are no todos.");
    expect(await command("!todo done 3", { where: shared })).toContain("There is no todo 3 here.");
    expect(todosIn((await turn([], { by: ben, where: shared })).first)).toEqual([]);
  });

  it("may be changed by the agent for somebody who may only chat, and not by that person's command", async () => {
    const { last } = await turn([["todos_add", { name: "For Ben" }]], { by: ben, where: shared });
    expect(todosIn(last)).toEqual(["1 For Ben"]);
    expect(await command("!todo clear", { by: ben, where: shared })).toContain("right to operate");
    expect(await command("!todo", { where: shared })).toBe("1 [ ] For Ben");
  });

  it("are replaced and cleared", async () => {
    expect(await command("!todo replace Look; Think it over;Act")).toBe("4 [ ] Look\n5 [ ] Think it over\n6 [ ] Act");
    const { last } = await turn([["todos_replace", { todos: ["Rest"] }]]);
    expect(todosIn(last)).toEqual(["7 Rest"]);
    expect(await command("!todo clear")).toBe("One todo was removed.");
    expect(todosIn((await turn()).first)).toEqual([]);
  });

  it("that the agent adds with another room in sight are not shown to people who may not read that room", async () => {
    await command("!todo add Of here");
    await turn([["todos_add", { name: "Of what Ben said" }]]);
    expect(await command("!todo")).toBe("8 [ ] Of here\n9 [ ] Of what Ben said");
    const cat = await stage.user("cat");
    await ann.invite(own, cat.id);
    await cat.join(own);
    const hidden = async () => (await command("!todo")) === "8 [ ] Of here";
    await eventually(hidden, { what: "the todo to be hidden" });
    const { first } = await turn();
    expect(todosIn(first)).toEqual(["8 Of here"]);
    expect(await command("!todo get 9")).toContain("There is no todo 9 here.");
  });

  it("are commanded with help: what is wrong, what was meant, how it is written", async () => {
    const wrong = await command("!todo done three");
    expect(wrong).toContain('id: found "three", expected a whole number, 1 or more');
    expect(wrong).toContain("`!todo done <id>`");
    expect(wrong).toContain("For example: `!todo done 3`");
    expect(await command("!todo dnoe 3")).toContain("Did you mean `!todo done`?");
    expect(await command("!tood add x")).toContain("Did you mean `!todo add`?");
    expect(await command("!find --limti 3 rooms:/**")).toContain("There is no --limti, did you mean --limit?");
    const help = await command("!help todo");
    for (const form of ["!todo", "!todo add <name>", "!todo replace <todos>", "!todo get <id>"])
      expect(help).toContain(`\`${form}\``);
  });

  it("commands of tools are known by the tools' names, and by those of the other sources", async () => {
    const path = `rooms:/${own}/names.md`;
    await command(`!write ${path} Mia`);
    for (const line of [`!cat ${path}`, `!FS_Read ${path}`, `!fs_read ${path}`, `!file_read ${path}`])
      expect(await command(line)).toBe("Mia");
    expect(await command("!help file_read")).toContain("`!cat <path>`");
  });

  it("leave nothing undone", () => stage.check());
});
