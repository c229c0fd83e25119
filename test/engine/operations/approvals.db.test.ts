import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { systemClock } from "../../../src/base/lib/clock.ts";
import type { Conversation } from "../../../src/base/lib/ids.ts";
import { HOME, type RoomId, type UserId } from "../../../src/base/lib/ids.ts";
import type { Agent } from "../../../src/domain/agents/agent.ts";
import { parseAgentSettings } from "../../../src/domain/agents/settings.ts";
import type { Level } from "../../../src/domain/rights/permissions.ts";
import { type Operation, Operations } from "../../../src/domain/tables/operations.ts";
import { Outbox } from "../../../src/domain/tables/outbox.ts";
import { Rooms } from "../../../src/domain/tables/rooms.ts";
import { Turns } from "../../../src/domain/tables/turns.ts";
import { Approvals, type PersonsDecision } from "../../../src/engine/operations/approvals.ts";
import { askPeople, cardOutcome } from "../../../src/engine/operations/asking.ts";
import { Toolbox } from "../../../src/engine/operations/toolbox.ts";
import { onEachDatabase } from "../../support/database.ts";
import { addAgent, call, newRoom, newUser, rightsOf, setMember, settleEvent, wake } from "../../support/rows.ts";

const bot = "@clevernet:test" as UserId;

onEachDatabase((database) => {
  const [ann, ben, admin] = [newUser(), newUser(), newUser()];
  const permissions: Record<string, Level> = { [ann]: "operate", [ben]: "chat", [admin]: "admin" };
  const woken: Conversation[] = [];
  const delivered: RoomId[] = [];
  const parts = async () => ({
    botUserId: bot,
    clock: systemClock,
    operations: new Operations(database()),
    rights: await rightsOf(database(), permissions),
    rooms: new Rooms(database()),
    toolbox: new Toolbox([]),
    onOutbox: (rooms: readonly RoomId[]) => void delivered.push(...rooms),
    onWoken: (conversations: readonly Conversation[]) => void woken.push(...conversations),
  });
  const newAgent = async (): Promise<Agent> => ({
    ...(await addAgent(database())),
    settings: parseAgentSettings({}, "test"),
    displayName: "Helper",
  });
  const roomOf = async (...people: readonly UserId[]): Promise<RoomId> => {
    const room = newRoom();
    for (const person of people) await setMember(database(), room, person, "join");
    return room;
  };
  const asking = async (agent: Agent, roomId: RoomId, input = {}) => {
    const asker = { agent, roomId, thread: undefined, taint: [] };
    return askPeople(await parts(), call({ requesters: [ben], ...input }), asker, { reason: "it would" });
  };
  /** A turn that waits for the decision on a question, with its card in the outbox. */
  const ask = async (
    roomId: RoomId,
    input = {},
    { taint = [] as string[], because = "it would" } = {},
  ): Promise<Operation> => {
    const agent = await newAgent();
    const turns = new Turns(database(), "a test");
    await wake(database(), { agent: agent.name, roomId });
    const turn = await turns.claim({ agent: agent.name, roomId }, 4);
    if (typeof turn === "string") throw new Error(turn);
    const asked = call({ requesters: [ben], n: 0, ...input });
    const asker = { agent, roomId, thread: undefined, taint };
    const question = await askPeople(await parts(), asked, asker, { reason: because });
    if ("refusal" in question) throw new Error(question.refusal);
    const operation = { ...asked, ...question.question, state: "asked" as const };
    await turns.commit(turn, {
      n: 0,
      name: "call x",
      result: {},
      outbox: question.outbox,
      operations: [operation],
      asks: true,
    });
    return find(question.question.id);
  };
  const find = async (id: number): Promise<Operation> => {
    const operation = await new Operations(database()).find(id);
    if (!operation) throw new Error(`there is no operation ${id}`);
    return operation;
  };
  const decide = async (operation: Operation, fields: Partial<PersonsDecision>) => {
    const roomId = operation.cardRoom ?? HOME;
    await new Approvals(await parts()).decide(operation, { isApproved: true, by: ann, roomId, ...fields });
    return find(operation.id);
  };
  const stateOf = async ({ turnId }: Operation) =>
    (await database().sql`select state from turns where id = ${turnId}`)[0]?.state;
  /** Texts that are to be sent into a room, without the signs. */
  const said = async (roomId: RoomId) => {
    const rows = await new Outbox(database()).take(roomId, 20);
    return rows
      .filter(({ kind }) => kind === "message")
      .map(({ content }) => String((content as { body?: string }).body));
  };

  describe("a question in which words were taken back", () => {
    it("is withdrawn, and its card says so without them", async () => {
      const room = await roomOf(ann, ben);
      const asked = await ask(room, { input: { content: "the code is 4711" }, summary: "write 4711" });
      await new Approvals(await parts()).withdrawBlanked(asked.id, { input: { content: "█" }, summary: "█" });
      expect(await find(asked.id)).toMatchObject({ state: "refused", decision: null });
      expect(await stateOf(asked)).toBe("ready");
      const outcome = (await said(room)).at(-1);
      expect(outcome).toContain("words in it were taken back");
      expect(outcome).not.toContain("4711");
      await expect(decide(asked, {})).rejects.toThrow("was withdrawn: words in it were taken back.");
    });

    it("stays decided where somebody has decided before", async () => {
      const asked = await decide(await ask(await roomOf(ann, ben)), {});
      await new Approvals(await parts()).withdrawBlanked(asked.id, {});
      expect(await find(asked.id)).toMatchObject({ state: "asked", decision: "approved" });
    });
  });

  describe("a number that two cards of a room have", () => {
    it("decides nothing: people react to the card that they mean", async () => {
      const room = await roomOf(ann, ben);
      const asked = await ask(room);
      const approvals = new Approvals(await parts());
      const verdict = { isApproved: true, by: ann, roomId: room };
      const card = (sender: UserId, key: string) =>
        settleEvent(database(), {
          roomId: room,
          sender,
          content: { body: "old", "org.clevernet.operation": asked.id, "org.clevernet.key": key },
        });
      const fields = { roomId: room, sender: bot, type: "m.room.member", stateKey: bot };
      const member = { userId: bot, membership: "join", displayName: undefined, isDirect: false, kind: "bot" } as const;
      await settleEvent(database(), fields, { member });
      await card(bot, asked.cardKey ?? "");
      await card(ann, "a person's");
      await card(bot, "of before the restore");
      await expect(approvals.decideNumber(asked.id, verdict)).rejects.toThrow("has the number");
      expect((await find(asked.id)).decision).toBe(null);
      expect(await decide(asked, {})).toMatchObject({ decision: "approved" });
      const other = await ask(room);
      await card(ann, "a person's");
      await approvals.decideNumber(other.id, verdict);
      expect((await find(other.id)).decision).toBe("approved");
    });
  });

  describe("a question", () => {
    it("is put to those in the room who may decide, by the agent", async () => {
      const agent = await newAgent();
      const room = await roomOf(ann, ben);
      const asked = await asking(agent, room);
      if ("refusal" in asked) throw new Error(asked.refusal);
      expect(asked.question.cardRoom).toBe(room);
      expect(asked.outbox.map(({ sender }) => sender)).toEqual(Array(3).fill(agent.userId));
      expect(asked.outbox[0]?.content).toMatchObject({ "m.mentions": { user_ids: [ann] } });
      expect(asked.outbox[0]?.content).toMatchObject({
        body: expect.stringContaining(`May decide: ${ann}, until tomorrow, `),
      });
    });

    it("notifies of several who may decide those for whom it is asked", async () => {
      const asked = await asking(await newAgent(), await roomOf(admin, ann), { requesters: [ann] });
      if ("refusal" in asked) throw new Error(asked.refusal);
      expect(asked.outbox[0]?.content).toMatchObject({ "m.mentions": { user_ids: [ann] } });
    });

    it("that nobody may answer is refused", async () => {
      expect(await asking(await newAgent(), await roomOf(ben))).toEqual({
        refusal: "it would, and nobody may approve it, neither here nor in a control room",
      });
      expect(await asking(await newAgent(), HOME)).toHaveProperty("refusal");
    });

    it("is refused where ten turns of the conversation wait already", async () => {
      const agent = await newAgent();
      const room = await roomOf(ann);
      for (let n = 0; n < 10; n += 1) {
        await database().sql`
          insert into turns (agent, room_id, number, reason, runner, state)
          values (${agent.name}, ${room}, ${n}, 'timer', 'test', 'parked')`;
      }
      expect(await asking(agent, room)).toEqual({
        refusal: "it would, and 10 turns of this conversation already wait for an approval",
      });
    });
  });

  describe("a decision", () => {
    it("is taken down with whoever made it, lets the turn go on, and is told on the card", async () => {
      const asked = await ask(await roomOf(ann, ben));
      const decided = await decide(asked, { isApproved: false, because: "not today" });
      expect(decided).toMatchObject({ decision: "denied", decidedBy: ann, decidedBecause: "not today" });
      expect(await stateOf(asked)).toBe("ready");
      expect(woken).toContainEqual({ agent: asked.agent, roomId: asked.roomId });
      expect(delivered).toContain(asked.cardRoom);
      expect((await said(asked.roomId)).at(-1)).toMatch(/Denied by .*: `not today`/);
    });

    it.each<[string, Partial<PersonsDecision>, string]>([
      ["by somebody without the right", { by: ben }, "you need the right to operate; you have: chat"],
      ["by somebody unknown", { by: newUser() }, "you need the right to operate; you have: none"],
      ["from another room", { roomId: newRoom() }, "does not belong to this room"],
      ["by an admin, from another room", { by: admin, roomId: newRoom() }, "does not belong to this room"],
    ])("%s does not count", async (_, fields, why) => {
      const asked = await ask(await roomOf(ann, ben));
      await expect(decide(asked, fields)).rejects.toThrow(why);
      expect(await find(asked.id)).toMatchObject({ state: "asked", decision: null });
      expect(await stateOf(asked)).toBe("parked");
    });

    it("stands: the next one does not count, and says who was first", async () => {
      const asked = await ask(await roomOf(ann, admin));
      await decide(asked, { isApproved: false });
      for (const operation of [asked, await find(asked.id)]) {
        await expect(decide(operation, { by: admin })).rejects.toThrow(`was already denied by ${ann}`);
      }
      await decide(await find(asked.id), { isApproved: false });
      expect((await said(asked.roomId)).filter((text) => text.includes("Denied"))).toHaveLength(1);
    });

    it("of many at the same time is one", async () => {
      const asked = await ask(await roomOf(ann, admin));
      const many = [ann, admin, ann, admin].map((by, n) => decide(asked, { by, isApproved: n < 2 }));
      const counted = (await Promise.allSettled(many)).filter(({ status }) => status === "fulfilled");
      expect(counted.length).toBeGreaterThan(0);
      const edits = (await said(asked.roomId)).filter((text) => text.startsWith("* "));
      expect(edits).toHaveLength((await find(asked.id)).decision === "denied" ? 1 : 0);
    });

    it("for an input that nobody could see in full can only be a no", async () => {
      const asked = await ask(await roomOf(ann), { input: { content: "x".repeat(9_000) } });
      await expect(decide(asked, {})).rejects.toThrow("can only be denied");
      expect(await decide(asked, { isApproved: false })).toMatchObject({ decision: "denied" });
    });

    it("for what was stopped, or never asked, does not count", async () => {
      const asked = await ask(await roomOf(ann));
      await new Turns(database(), "a test").close({ id: asked.turnId ?? 0 }, "cancelled", "stopped", {});
      await expect(decide(await find(asked.id), {})).rejects.toThrow(`Operation ${asked.id} was stopped.`);
      const done = { ...asked, state: "done" as const, cardKey: null };
      await expect(decide(done, {})).rejects.toThrow("there is nothing to decide");
    });
  });

  describe("in time", () => {
    const late = async (): Promise<Operation> => {
      const asked = await ask(await roomOf(ann));
      await database().sql`update operations set expires_at = now() - interval '1 second' where id = ${asked.id}`;
      return find(asked.id);
    };

    it("nobody has decided: the turn goes on, and the card tells people", async () => {
      const asked = await late();
      const conversations = await new Approvals(await parts()).expire();
      expect(conversations).toContainEqual({ agent: asked.agent, roomId: asked.roomId });
      expect(await find(asked.id)).toMatchObject({ state: "expired", decision: null });
      expect(await stateOf(asked)).toBe("ready");
      const [card, edit, ...more] = await said(asked.roomId);
      expect(card).toContain("May decide");
      expect(edit).toContain("Expired");
      expect(more).toEqual([]);
      expect(await new Approvals(await parts()).expire()).toEqual([]);
    });

    it("a decision is too late also before that is told", async () => {
      await expect(decide(await late(), {})).rejects.toThrow("has expired");
    });
  });

  describe("with a control room", () => {
    let control: RoomId;
    beforeAll(async () => {
      control = await roomOf(admin);
      await new Rooms(database()).setControlRoom(control);
    });
    afterAll(() => new Rooms(database()).setKind(control, "chat"));

    it("what nobody in the room may decide is asked there by the bot, and the room is told", async () => {
      const room = await roomOf(ben);
      const asked = await ask(room);
      expect(asked.cardRoom).toBe(control);
      expect(await said(room)).toEqual([expect.stringContaining("Nobody here may approve what I am about to do")]);
      await expect(decide(asked, { by: ben, roomId: room })).rejects.toThrow("right to operate");
      expect(await decide(asked, { by: admin })).toMatchObject({ decision: "approved", decidedBy: admin });
      const cards = await new Outbox(database()).take(control, 20);
      expect(cards.map(({ sender, kind }) => `${sender} ${kind}`)).toEqual([
        `${bot} message`,
        `${bot} reaction`,
        `${bot} reaction`,
      ]);
    });

    it("so is what an agent wants in a room that is encrypted in an unknown way, in which nothing is said", async () => {
      const room = await roomOf(ann, ben);
      await database().sql`
        insert into room_state (room_id, type, content, sender, position)
        values (${room}, 'm.room.encryption', '{"algorithm":"org.example.unknown"}', ${ann}, 1)`;
      expect((await ask(room)).cardRoom).toBe(control);
      expect(await said(room)).toEqual([]);
      expect((await said(control)).at(-1)).toContain(`in \`${room}\``);
    });

    describe("that is told of an encrypted room", () => {
      const sealed = async (input = {}) => {
        const room = await roomOf(ben);
        await settleEvent(
          database(),
          { roomId: room, type: "m.room.encryption", stateKey: "", content: {} },
          { state: { type: "m.room.encryption", content: { algorithm: "m.megolm.v1.aes-sha2" }, sender: ben } },
        );
        const taint = [`rooms:/${room}/secret.md`, ben];
        const because = `it would; untrusted text was read before: ${taint.join(", ")}`;
        const secret = { input: { path: `rooms:/${room}/secret.md`, content: "secret" }, ...input };
        return { room, asked: await ask(room, secret, { taint, because }) };
      };
      const everything = async () =>
        JSON.stringify((await new Outbox(database()).take(control, 100)).map(({ content }) => content));

      it("names the tool, the agent and the room, and none of its words", async () => {
        const { asked, room } = await sealed();
        expect(asked.cardRoom).toBe(control);
        const card = (await said(control)).at(-1);
        for (const told of ["**Use `Tool`?**", `in \`${room}\``, "That room is encrypted", ben, "✅ yes"]) {
          expect(card).toContain(told);
        }
        expect(await everything()).not.toContain("secret");
        expect(asked.askedBecause).toContain("secret.md");
      });

      it("tells none of them in its outcome, and is decided as any other", async () => {
        const { asked, room } = await sealed();
        const denied = await decide(asked, { by: admin, isApproved: false, because: "a secret" });
        expect(denied).toMatchObject({ decision: "denied", decidedBecause: "a secret", roomId: room });
        expect((await said(control)).at(-1)).toContain(`Denied by ${admin}.`);
        const failed = await decide((await sealed()).asked, { by: admin });
        const told = cardOutcome(failed, { state: "failed", error: "no file secret.md" }, await parts());
        expect(JSON.stringify(told)).toContain("and failed");
        expect(JSON.stringify(told) + (await everything())).not.toContain("secret");
      });

      it("shows nothing of an input that is too long to be shown", async () => {
        await sealed({ input: { content: "secret ".repeat(2_000) } });
        expect((await said(control)).at(-1)).toContain("can only be denied.**");
        expect(await everything()).not.toContain("secret");
      });
    });

    it("so is what an agent wants at home", async () => {
      const asked = await ask(HOME);
      expect(asked.cardRoom).toBe(control);
      expect((await said(control)).at(-1)).toContain("by itself");
    });

    it("admins decide from there also what is asked elsewhere, and others do not", async () => {
      await setMember(database(), control, ann, "join");
      const elsewhere = await ask(await roomOf(ann));
      await expect(decide(elsewhere, { roomId: control })).rejects.toThrow("does not belong to this room");
      expect(await decide(elsewhere, { by: admin, roomId: control })).toMatchObject({ decision: "approved" });
      await setMember(database(), control, ann, "leave");
    });

    it("whoever may decide comes into the room later decides there, too", async () => {
      const room = await roomOf(ben);
      const asked = await ask(room);
      await setMember(database(), room, ann, "join");
      expect(await decide(asked, { roomId: room })).toMatchObject({ decision: "approved", decidedBy: ann });
    });
  });
});
