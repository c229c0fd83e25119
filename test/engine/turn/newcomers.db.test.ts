import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Database } from "../../../src/adapters/database/connection.ts";
import { nobodyElse } from "../../../src/adapters/database/notify.ts";
import { systemClock } from "../../../src/base/lib/clock.ts";
import type { AgentName, RoomId, UserId } from "../../../src/base/lib/ids.ts";
import { silentLog } from "../../../src/base/lib/log.ts";
import { type Agent, AgentDirectory } from "../../../src/domain/agents/agent.ts";
import { parseAgentSettings } from "../../../src/domain/agents/settings.ts";
import { parsePath } from "../../../src/domain/files/path.ts";
import type { Rights } from "../../../src/domain/rights/rights.ts";
import { settle } from "../../../src/domain/tables/effects.ts";
import { Files } from "../../../src/domain/tables/files.ts";
import { Turns } from "../../../src/domain/tables/turns.ts";
import { tool as delegate } from "../../../src/edges/tools/delegate.ts";
import { tool as deleteFile } from "../../../src/edges/tools/fs-delete.ts";
import { tool as readFile } from "../../../src/edges/tools/fs-read.ts";
import { tool as react } from "../../../src/edges/tools/react.ts";
import { tool as sendMessage } from "../../../src/edges/tools/send-message.ts";
import type { AnyTool } from "../../../src/engine/operations/tool.ts";
import { TurnRunner } from "../../../src/engine/turn/runner.ts";
import { onEachDatabase } from "../../support/database.ts";
import { subAgentOf } from "../../support/errand.ts";
import { mindOf } from "../../support/mind.ts";
import { mortal } from "../../support/mortal-database.ts";
import {
  call,
  newKey,
  newRoom,
  newUser,
  rightsOf,
  setMember,
  settleEvent,
  storeEvent,
  wake,
} from "../../support/rows.ts";
import { type ModelRequest, ScriptedModel, type Step, say, toolName, userText } from "../../support/scripted-model.ts";

const secret = "the safe is at 4711";
const helper = `---
name: helper
description: says things
tools: [SendMessage]
---

You say things.
`;

onEachDatabase((database) => {
  let model: ScriptedModel;
  let rights: Rights;
  let agent: Agent;
  /** Boss is with the agent in `here`, and alone with it in `office`, where the secret was told. */
  let boss: UserId;
  let stranger: UserId;
  let here: RoomId;
  let office: RoomId;
  const tools: AnyTool[] = [sendMessage, readFile, deleteFile, react, delegate];

  beforeEach(async () => {
    model = await new ScriptedModel().start();
    [boss, stranger, here, office] = [newUser(), newUser(), newRoom(), newRoom()];
    rights = await rightsOf(database(), { [boss]: "operate", test: "chat" });
    await add({});
  });
  afterEach(() => model.stop());

  const add = async (settings: object) => {
    const name = newKey().replace(" ", "") as AgentName;
    const directory = new AgentDirectory(database(), systemClock, silentLog);
    const parsed = parseAgentSettings({ ...settings }, "test");
    await directory.seed({ name, owner: newUser(), persona: undefined, settings: parsed }, "test");
    const found = await directory.find(name);
    if (!found) throw new Error("no agent");
    agent = found;
    for (const room of [here, office]) {
      for (const userId of [boss, agent.userId]) await setMember(database(), room, userId, "join");
    }
    const content = { msgtype: "m.text", body: secret };
    await settleEvent(database(), { roomId: office, sender: boss, content }, { shownChars: 0 });
  };
  const process = (own: Database = database()) => {
    const shipped = new Map([["/subagents/helper.md", helper]]);
    const mind = mindOf(own, { modelUrl: model.url, rights, tools, shipped });
    return new TurnRunner(mind, nobodyElse, () => {});
  };
  const conversation = () => ({ agent: agent.name, roomId: here });
  const comes = (room = here) => setMember(database(), room, stranger, "join");
  /** The homeserver has pushed the join, and it is not routed yet. */
  const isComing = () =>
    storeEvent(database(), {
      roomId: here,
      sender: stranger,
      type: "m.room.member",
      stateKey: stranger,
      content: { membership: "join" },
    });
  /** Sets the model's answers, one after the other. */
  const script = (...answers: readonly ((request: ModelRequest) => Step[] | Promise<Step[]>)[]) => {
    for (const answer of answers) model.on(() => true, answer, { times: 1 });
  };
  const speak = (content: string) => (request: ModelRequest) => [say(request, here, content, { final: true })];
  const work = async (own?: Database) => {
    await wake(database(), conversation(), { requester: boss });
    await process(own).run(conversation());
  };
  const said = async (room = here) => {
    const rows = await database().sql<{ body: string | null }[]>`
      select content->>'body' as body from outbox where room_id = ${room} and kind in ('message', 'reaction') order by id`;
    return rows.map(({ body }) => body);
  };
  const lastTurn = async () => {
    const [row] = await database().sql<{ id: number; state: string; sources: string[] }[]>`
      select id, state, sources from turns where agent = ${agent.name} order by id desc limit 1`;
    if (!row) throw new Error("no turn");
    return row;
  };
  const shownIn = (index: number): string => userText(model.requests[index] as ModelRequest);
  /** Whoever came heard nothing, and the second look of the turn shows nothing of what they may not read. */
  const expectLookedAnew = async (...heard: readonly string[]) => {
    expect(await said()).toEqual(heard);
    expect(shownIn(0)).toContain(secret);
    const again = model.requests.findIndex((request) => userText(request).includes("Somebody has come"));
    expect(again).toBeGreaterThan(0);
    for (const request of model.requests.slice(again)) expect(userText(request)).not.toContain("4711");
    expect(await lastTurn()).toMatchObject({ state: "done", sources: [here] });
  };

  describe("somebody who comes while the model thinks", () => {
    it.each(["cacheable", "seed"])("hears nothing that was rendered without them: %s", async (layout) => {
      await add({ layout });
      script(async (request) => {
        await comes();
        return speak(secret)(request);
      }, speak("hello, both of you"));
      await work();
      await expectLookedAnew("hello, both of you");
    });

    it("hears no text either, where that is the answer", async () => {
      await add({ answer: "text" });
      script(
        async () => {
          await comes();
          return [secret];
        },
        () => ["hello, both of you"],
      );
      await work();
      await expectLookedAnew("hello, both of you");
    });

    it("hears none of several messages, and calls behind them are not carried out", async () => {
      script(async (request) => {
        await comes();
        return [
          say(request, here, secret),
          say(request, here, "once more: 4711"),
          say(request, here, "so", { final: true }),
        ];
      }, speak("hello"));
      await work();
      await expectLookedAnew("hello");
    });

    it("sees no card that asks for what was rendered without them", async () => {
      script(async (request) => {
        await comes();
        return [{ call: toolName(request, "FS_Delete"), arguments: { path: `rooms:/${here}/4711` } }];
      }, speak("hello"));
      await work();
      await expectLookedAnew("hello");
      expect(await database().sql`select 1 from operations where state = 'asked' and agent = ${agent.name}`).toEqual(
        [],
      );
    });

    it("sees no reaction either", async () => {
      const { eventId } = await wake(database(), conversation(), { requester: boss });
      script(async (request) => {
        await comes();
        return [{ call: toolName(request, "React"), arguments: { eventId, key: "4711" } }];
      }, speak("hello"));
      await work();
      await expectLookedAnew("hello");
    });

    it("hears nothing of a sub-agent", async () => {
      script(
        (request) => [
          { call: toolName(request, "delegate"), arguments: { subAgent: "helper", request: `say ${secret}` } },
        ],
        async (request) => {
          expect(subAgentOf(request)).toBe("helper");
          await comes();
          return speak(secret)(request);
        },
        speak("hello"),
      );
      await work();
      await expectLookedAnew("hello");
    });

    it("hears nothing that was read in an earlier step of the turn", async () => {
      const file = { ...parsePath(`rooms:/${office}/a.md`), contentType: "text/plain", text: "dial 4711", owner: boss };
      await new Files(database()).write(file);
      script(
        (request) => [{ call: toolName(request, "FS_Read"), arguments: { path: `rooms:/${office}/a.md` } }],
        async (request) => {
          await comes();
          return [{ reasoning: "4711 it is" }, { call: toolName(request, "FS_Read"), arguments: { path: "rooms:/x" } }];
        },
        speak("the number is 4711"),
        speak("hello"),
      );
      await work();
      await expectLookedAnew("hello");
    });

    it("counts as here from the moment that the homeserver has told us", async () => {
      let coming: Awaited<ReturnType<typeof isComing>> | undefined;
      script(async (request) => {
        coming = await isComing();
        return speak(secret)(request);
      }, speak("hello"));
      const working = work();
      await expect.poll(async () => (await lastTurn()).sources).toContain(office);
      expect(await said()).toEqual([]);
      if (!coming) throw new Error("nobody is coming");
      const member = {
        userId: stranger,
        membership: "join",
        displayName: undefined,
        isDirect: false,
        kind: "human",
      } as const;
      await settle(database(), coming, { member, shownChars: 0 });
      await working;
      await expectLookedAnew("hello");
    });

    it("hears all of it where they may read all that was rendered", async () => {
      await comes(office);
      script(async (request) => {
        await comes();
        return speak(secret)(request);
      });
      await work();
      expect(await said()).toEqual([secret]);
    });

    it("hears nothing of the room itself, where its history is closed to them", async () => {
      const state = { type: "m.room.history_visibility", content: { history_visibility: "joined" }, sender: boss };
      await settleEvent(database(), { roomId: here }, { state });
      await setMember(database(), office, boss, "leave");
      await settleEvent(
        database(),
        { roomId: here, sender: boss, content: { msgtype: "m.text", body: secret } },
        { shownChars: 0 },
      );
      script(async (request) => {
        await comes();
        return speak(secret)(request);
      }, speak("hello"));
      await work();
      await expectLookedAnew("hello");
    });

    it("comes into a room whose past they may read, and is answered as anybody", async () => {
      await setMember(database(), office, boss, "leave");
      script(async (request) => {
        await comes();
        return speak("hello")(request);
      });
      await work();
      expect(await said()).toEqual(["hello"]);
      expect(model.requests).toHaveLength(1);
    });

    it("hears nothing in another room either", async () => {
      const quiet = newRoom();
      for (const userId of [agent.userId, boss]) await setMember(database(), quiet, userId, "join");
      const slow: AnyTool = {
        ...sendMessage,
        async run(input, context, kind) {
          await comes(quiet);
          return sendMessage.run(input, context, kind);
        },
      };
      tools.unshift(slow);
      tools.splice(tools.indexOf(sendMessage), 1);
      script((request) => [say(request, quiet, secret)], speak("hello"));
      await work();
      tools.splice(0, 1, sendMessage);
      expect(await said(quiet)).toEqual([]);
    });
  });

  it("what somebody approved who was told of the wall is said, whoever is there", async () => {
    const lounge = newRoom();
    for (const userId of [agent.userId, boss, stranger]) await setMember(database(), lounge, userId, "join");
    script((request) => [say(request, lounge, secret)], speak("done"));
    await work();
    expect(await said(lounge)).toEqual([]);
    const mind = mindOf(database(), { modelUrl: model.url, rights, tools });
    const [asked] = await mind.operations.open(conversation());
    expect(asked?.askedBecause).toContain(lounge);
    await mind.operations.decide(asked?.id ?? 0, "approved", { userId: boss });
    await process().run(conversation());
    expect(await said(lounge)).toEqual([secret]);
    expect((await said()).at(-1)).toBe("done");
  });

  it.each([
    [true, "It is not shown."],
    [false, secret],
  ])("the answer to a command, where somebody came: %s", async (isThere, heard) => {
    const event = await storeEvent(database(), { roomId: here, sender: boss });
    if (isThere) await comes();
    const draft = (body: string) => ({
      key: `answer ${event.eventId}`,
      roomId: here,
      sender: agent.userId,
      kind: "message" as const,
      content: { body },
    });
    await settle(database(), event, {
      operation: { ...call(), state: "done", agent: agent.name, sources: [here, office], audience: [boss] },
      outbox: [draft(secret)],
      unsaid: [draft("It is not shown.")],
    });
    expect(await said()).toEqual([heard]);
  });

  it("what was rendered before the turn had to look anew is not shown as that turn either", async () => {
    script(async (request) => {
      await comes();
      return speak(secret)(request);
    }, speak("hello"));
    await work();
    const shown = await new Turns(database(), newKey()).findTurn(conversation(), undefined);
    expect(shown?.sources).toEqual(expect.arrayContaining([here, office]));
    const entries = await database().sql<{ entry: string; sources: string[] }[]>`
      select entry, sources from ephemeris where user_id = ${agent.userId} and entry like '%4711%'`;
    expect(entries.length).toBeGreaterThan(0);
    for (const { sources } of entries) expect(sources).toContain(office);
  });
  it("a process that dies before any statement of its own says it to nobody who came, and answers once", async () => {
    for (let at = 1; ; at++) {
      await add({});
      model = await new ScriptedModel().start();
      model.onEvery(async (request) => {
        if (!userText(request).includes("4711")) return [say(request, here, "hello", { final: true })];
        await comes();
        return [say(request, here, secret, { final: true })];
      });
      await wake(database(), conversation(), { requester: boss });
      const { database: own, died } = mortal(database(), at);
      const isDead = (await Promise.race([died, process(own).run(conversation())])) === "died";
      if (isDead) await process().run(conversation());
      const heard = await said();
      expect(
        heard.filter((text) => text === "hello"),
        `statement ${at}`,
      ).toHaveLength(1);
      expect(heard.join(), `statement ${at}`).not.toContain("4711");
      if (!isDead) break;
      [here, office, stranger] = [newRoom(), newRoom(), newUser()];
      await model.stop();
    }
  });
});
