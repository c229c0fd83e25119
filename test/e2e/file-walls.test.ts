import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { eventually } from "../support/poll.ts";
import { type ModelRequest, newMessages, toolName } from "../support/scripted-model.ts";
import { answer, callsOf } from "../support/sight.ts";
import { Stage } from "../support/stage.ts";
import type { TestUser } from "../support/user.ts";

const padding = "the tide tables of the harbour were compared once more ".repeat(65);

describe("files made from another room", () => {
  let stage: Stage;
  let [ann, bob]: TestUser[] = [];
  beforeAll(async () => {
    stage = await Stage.set({ database: "postgres", permissions: { "clevernet.test": "operate" } });
    await stage.bridge.start();
    [ann, bob] = await Promise.all([stage.user("ann"), stage.user("bob")]);
    // The model does what an attacker wants: it carries what it sees of other rooms wherever it can write.
    stage.model.on(isDigest, (request) => `Digest: ${secretIn(request, "abbey")}`);
    stage.model.on("carry what you know", (request) => {
      const [, what = "", room] = /of the (\w+) to (!\S+)/.exec(newMessages(request).at(-1)?.body ?? "") ?? [];
      const secret = secretIn(request, what);
      const call = (name: string, args: object) => ({ call: toolName(request, name), arguments: args });
      if (callsOf(request).length > 0) return answer(request, "carried");
      return [
        call("log_activity", { entry_type: "THOUGHT", content: secret }),
        call("update_status", { new_status_text: secret, next_step: "Wait" }),
        call("set_fact", { key: "code", value: secret }),
        call("FS_WriteFile", { path: `rooms:/${room}/notes.md`, content: secret }),
      ];
    });
    stage.model.onEvery((request) => answer(request, "noted"));
  });
  afterAll(() => stage.strike());

  const isDigest = ({ body }: ModelRequest) => !body.tools?.length;
  const textOf = (request: ModelRequest) => JSON.stringify(request.body.messages);
  const secretIn = (request: ModelRequest, what: string) =>
    new RegExp(`the ${what} is at [0-9]+`).exec(textOf(request))?.[0] ?? "nothing";
  const ask = async (user: TestUser, room: string, words: string, expected: string) => {
    const said = user.heard(room).length;
    await user.mention(room, stage.agentId(), words);
    await eventually(
      () =>
        user
          .heard(room)
          .slice(said)
          .some(({ body }) => body === expected),
      { what: expected },
    );
    return stage.model.requests.filter((request) => !isDigest(request)).at(-1) as ModelRequest;
  };
  const command = async (user: TestUser, room: string, line: string) => {
    const asked = await user.say(room, line);
    const { body } = await user.waitForMessage(room, ({ content }) => content["org.clevernet.command"] === asked);
    return body;
  };
  /** Two rooms of Ann's: in the first the secret is said, and carried into the files of the second. */
  const carried = async (what: string, secret: string) => {
    const source = await stage.directRoom(ann as TestUser);
    await ask(ann as TestUser, source, secret, "noted");
    const room = await stage.directRoom(ann as TestUser);
    await ask(ann as TestUser, room, `carry what you know of the ${what} to ${room}`, "carried");
    return room;
  };
  const bobComes = async (room: string) => {
    await ann?.invite(room, bob?.id ?? "");
    await bob?.waitForMembership(room, "invite");
    await bob?.join(room);
    await eventually(
      async () => {
        const [row] = await stage.query<{ membership: string }>(
          `select membership from members where room_id = '${room}' and user_id = '${bob?.id}'`,
        );
        return row?.membership === "join";
      },
      { what: "Bob to be known" },
    );
  };

  it("are not shown to who comes later, and the agent goes on with new ones", async () => {
    if (!ann || !bob) throw new Error("nobody is here");
    const room = await carried("tower", "the tower is at 4711");
    const memory = `rooms:/${room}/agents/helper/memory`;
    const kept = ["LOG.md", "NOW.md", "facts.json"].map((name) => `${memory}/${name}`);
    const all = [...kept, `rooms:/${room}/notes.md`];
    for (const path of all) expect(await command(ann, room, `!cat ${path}`)).toContain("4711");
    await bobComes(room);
    const seen = await ask(bob, room, "what of it?", "noted");
    expect(textOf(seen)).not.toContain("4711");
    for (const user of [bob, ann]) {
      for (const path of all)
        for (const line of [`!cat ${path}`, `!open ${path}`, `!summary ${path}`, `!cp ${path} copy.md`])
          expect(await command(user, room, line)).toContain("is closed here");
      expect(await command(user, room, `!grep rooms:/${room}/** 4711`)).not.toContain("4711");
      expect(await command(user, room, "!ls")).not.toContain("notes.md");
    }
    await command(bob, room, "!log THOUGHT Bob was here");
    await command(bob, room, "!fact colour blue");
    expect(await command(bob, room, `!cat ${memory}/LOG.md`)).toContain("Bob was here");
    expect(await command(bob, room, `!cat ${memory}/facts.json`)).toContain("blue");
    expect(textOf(await ask(bob, room, "and now?", "noted"))).toContain("Bob was here");
    await bob.leave(room);
    await eventually(
      async () => {
        const found = await command(ann as TestUser, room, `!grep ${memory}/** 4711`);
        return [/LOG\.\d+\.md/, /facts\.\d+\.json/].every((name) => name.test(found));
      },
      { what: "the files that were put aside" },
    );
  }, 120_000);

  it("are compacted by a command that makes them too long, to a summary that is withheld as they are", async () => {
    if (!ann || !bob) throw new Error("nobody is here");
    const room = await carried("abbey", "the abbey is at 1147");
    for (let line = 0; line < 15; line++) await command(ann, room, `!log THOUGHT ${line} ${padding}`);
    const log = () => command(ann as TestUser, room, `!cat rooms:/${room}/agents/helper/memory/LOG.md`);
    const what = "SUMMARY: Digest: the abbey is at 1147";
    await eventually(async () => (await log()).includes(what), { what });
    expect(await command(ann, room, "!memories the digest of the abbey")).toContain("1147");
    await bobComes(room);
    expect(await command(bob, room, "!memories the digest of the abbey")).not.toContain("1147");
    expect(textOf(await ask(bob, room, "what of the abbey?", "noted"))).not.toContain("1147");
  }, 120_000);
});
