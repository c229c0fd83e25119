import { expect, it } from "vitest";
import type { RoomId } from "../../../src/base/lib/ids.ts";
import { onEachDatabase } from "../../support/database.ts";
import { newUser } from "../../support/rows.ts";
import { type ModelRequest, say, toolName } from "../../support/scripted-model.ts";
import { Talk } from "../../support/talk.ts";

onEachDatabase((database) => {
  it("an agent is shown an old result again, whole, and only where everybody may read what it was made from", async () => {
    let call: { tool: string; arguments: object } | undefined;
    const talk = await Talk.begin(database(), {
      fields: { approxContextCharsMax: 20_000 },
      reply: (request: ModelRequest, roomId: RoomId) => {
        if (!call) return say(request, roomId, "done", { final: true });
        const { tool, arguments: input } = call;
        call = undefined;
        return { call: toolName(request, tool), arguments: input };
      },
    });
    /** The result that the agent is sent. */
    const ask = async (roomId: RoomId, tool: string, input: object): Promise<string> => {
      call = { tool, arguments: input };
      await talk.ask(roomId, "please");
      return talk.calls.at(-1)?.texts.at(-1) ?? "";
    };
    const [alone, another, open] = [await talk.room(), await talk.room(), await talk.room(newUser())];
    const javascript = "Array.from({ length: 300 }, (_, n) => 'number ' + n).join(' ')";
    const first = await ask(alone, "compute", { javascript });
    expect(first).toContain("number 299");
    const number = Number(/operation="(\d+)"/.exec(first)?.[1]);
    for (let n = 0; n < 60; n++) await talk.say(alone, "words ".repeat(60));

    const again = await ask(alone, "Operation_Show", { number });
    const shown = talk.calls.at(-1)?.user ?? "";
    expect(shown).not.toContain("number 299");
    expect(again).toMatch(new RegExp(`operation ${number}, compute, done, .*number 0 number 1 .*number 299`, "s"));
    expect(again).toContain("Array.from");
    expect(await ask(another, "Operation_Show", { number })).toContain("number 299");

    const refusal = `There is no operation ${number} of yours, or not everybody here may read`;
    expect(await ask(open, "Operation_Show", { number })).toContain(refusal);
    expect(await ask(alone, "Operation_Show", { number: 2_000_000_000 })).toContain("There is no operation");
    await talk.stop();
  });

  it("an agent is not shown another agent's operations", async () => {
    let input: object = {};
    const reply = (tool: string) => (request: ModelRequest, roomId: RoomId) =>
      request.body.messages.some(({ role }) => role === "tool")
        ? say(request, roomId, "done", { final: true })
        : { call: toolName(request, tool), arguments: input };
    const [one, other] = [
      await Talk.begin(database(), { reply: reply("FS_Tree") }),
      await Talk.begin(database(), { reply: reply("Operation_Show") }),
    ];
    await one.ask(await one.room(), "please");
    const number = Number(/operation="(\d+)"/.exec(one.calls.at(-1)?.texts.at(-1) ?? "")?.[1]);
    input = { number };
    await other.ask(await other.room(), "please");
    expect(other.calls.at(-1)?.texts.at(-1)).toContain(`There is no operation ${number} of yours`);
    await Promise.all([one.stop(), other.stop()]);
  });
});
