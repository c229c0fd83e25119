import { describe, expect, it, vi } from "vitest";
import { Events } from "../../../src/domain/tables/events.ts";
import { type NewRender, Renders } from "../../../src/domain/tables/renders.ts";
import { Turns } from "../../../src/domain/tables/turns.ts";
import { onEachDatabase } from "../../support/database.ts";
import { addAgent, newRoom, settleEvent, wake } from "../../support/rows.ts";

const never = 3_600_000;

onEachDatabase((database) => {
  /** Renders with the tools in the database, a turn, and what is shown in its first step. */
  const begun = async ({ patienceMs = never } = {}) => {
    const conversation = { agent: (await addAgent(database())).name, roomId: newRoom() };
    await wake(database(), conversation);
    const turns = new Turns(database(), "this process");
    const turn = await turns.claim(conversation, 4);
    if (typeof turn === "string") throw new Error(`the conversation is ${turn}`);
    const event = await settleEvent(database(), { roomId: conversation.roomId });
    const shown = { system: "s", prompt: "p", eventIds: [event.eventId], subAgent: null };
    const tools = { tools: `["${turn.id}"]`, toolset: `of ${turn.id}` };
    const render: NewRender = { turnId: turn.id, n: 0, ...shown, ...tools };
    const renders = new Renders(database(), patienceMs);
    const kept = () => renders.of(turn.id, []);
    return { turns, turn, event, render, renders, kept };
  };

  describe("a render", () => {
    it("is kept at once where it is the first with its tools", async () => {
      const { render, renders, kept } = await begun();
      expect(await renders.keepSoon(render).take()).toBeUndefined();
      expect(await kept()).toMatchObject([{ n: 0, prompt: "p", tools: render.tools }]);
    });

    it("is kept on its own where no step comes for it", async () => {
      const { render, renders, kept } = await begun({ patienceMs: 0 });
      await renders.keep(render);
      renders.keepSoon({ ...render, n: 1 });
      await vi.waitFor(async () => expect(await kept()).toMatchObject([{ n: 0 }, { n: 1, tools: render.tools }]));
    });

    it("is written with its step that comes before, and then only there", async () => {
      const { turns, turn, render, renders, kept } = await begun();
      await renders.keep(render);
      const taken = await renders.keepSoon({ ...render, n: 1 }).take();
      expect(await kept()).toMatchObject([{ n: 0 }]);
      await turns.commit(turn, { n: 1, name: "model", result: {}, render: taken });
      expect(await kept()).toMatchObject([{ n: 0 }, { n: 1, prompt: "p", tools: render.tools }]);
    });

    it("is empty in its step where something in it was redacted since it was shown", async () => {
      const { turns, turn, event, render, renders, kept } = await begun();
      await renders.keep({ ...render, eventIds: [] });
      const pending = renders.keepSoon({ ...render, n: 1 });
      await new Events(database()).redact(event.eventId);
      await turns.commit(turn, { n: 1, name: "model", result: {}, render: await pending.take() });
      expect(await kept()).toMatchObject([
        { n: 0, prompt: "p" },
        { n: 1, system: "", prompt: "" },
      ]);
    });

    it("is forgotten after three days, and no sooner", async () => {
      const { turn, render, renders, kept } = await begun();
      for (const n of [0, 1]) await renders.keep({ ...render, n });
      await database()
        .sql`update renders set created_at = now() - interval '73 hours' where turn_id = ${turn.id} and n = 0`;
      await renders.forgetOld();
      expect(await kept()).toMatchObject([{ n: 1, tools: render.tools }]);
    });
  });
});
