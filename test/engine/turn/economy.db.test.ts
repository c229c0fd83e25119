import { countTokens } from "gpt-tokenizer/encoding/o200k_base";
import { expect, it } from "vitest";
import type { RoomId } from "../../../src/base/lib/ids.ts";
import { logEnd } from "../../../src/base/prompt/log.ts";
import type { AgentSettings } from "../../../src/domain/agents/settings.ts";
import { onEachDatabase } from "../../support/database.ts";
import { type ModelRequest, say, toolName } from "../../support/scripted-model.ts";
import { commonStart, type SentCall, Talk } from "../../support/talk.ts";

const words = "we could look at the plan, ask <those> who were there & write down what it costs; ";
const timeout = 180_000;

onEachDatabase((database) => {
  /** A person and an agent talk in three rooms; every fifth answer takes two steps. `long`: how long what is said becomes. */
  const converse = async (
    exchanges: number,
    long: number,
    fields: Partial<AgentSettings> = {},
  ): Promise<SentCall[]> => {
    let n = 0;
    let hasLooked = false;
    const reply = (request: ModelRequest, roomId: RoomId) => {
      if (n % 5 === 4 && !hasLooked) {
        hasLooked = true;
        return { call: toolName(request, "FS_Tree"), arguments: {} };
      }
      const content = `answer ${n}: ${words.repeat(n % (long + 1))}`.trim();
      return [{ reasoning: `They ask for the ${n}th time.` }, say(request, roomId, content, { final: true })];
    };
    const talk = await Talk.begin(database(), { fields, reply });
    const rooms = [await talk.room(), await talk.room(), await talk.room()];
    for (n = 0; n < exchanges; n++) {
      hasLooked = false;
      await talk.ask(rooms[n % 3] as RoomId, `question ${n}: ${words.repeat(n % (long + 1))}`);
    }
    await talk.stop();
    return talk.calls;
  };

  /** The first calls of turns, and what the model had been sent of the conversation before. */
  const pairs = (calls: readonly SentCall[]): [SentCall, SentCall][] => {
    const last = new Map<RoomId, SentCall>();
    return calls.flatMap((call) => {
      const before = last.get(call.roomId);
      last.set(call.roomId, call);
      return before ? [[before, call] as [SentCall, SentCall]] : [];
    });
  };

  it(
    "of 200 exchanges in three rooms all but a few calls begin with the whole of the call before, up to its tail",
    async () => {
      const calls = await converse(200, 1);
      const upToTail = ({ user }: SentCall) => user.slice(0, user.lastIndexOf(logEnd.trimEnd()));
      const compared = pairs(calls);
      const broken = compared.filter(([before, call]) => !call.user.startsWith(upToTail(before)));
      expect(compared.length).toBeGreaterThan(200);
      expect(broken.length).toBeLessThanOrEqual(compared.length * 0.05);
      expect(new Set(calls.map(({ system }) => system)).size).toBe(1);
      for (const { system, user } of calls) expect(system.length + user.length).toBeLessThanOrEqual(50_000);
    },
    timeout,
  );

  it.each([
    ["short", 1],
    ["long", 6],
  ])(
    "of 30 wakes with %s messages nine tenths of the tokens are common to two calls of a conversation",
    async (_, long) => {
      let [all, same, tails] = [0, 0, 0];
      for (const [before, call] of pairs(await converse(30, long))) {
        const [one, other] = [before, call].map(({ texts }) => texts.join("\n")) as [string, string];
        all += countTokens(other);
        same += countTokens(other.slice(0, commonStart(one, other)));
        const tail = call.user.slice(call.user.lastIndexOf(logEnd));
        const spoken = [...tail.matchAll(/<message [^>]*>([^<]*)</g)].reduce(
          (sum, [, text = ""]) => sum + text.length,
          0,
        );
        tails = Math.max(tails, tail.length - spoken);
      }
      expect(same / all).toBeGreaterThan(0.9);
      expect(tails).toBeLessThan(1_000);
    },
    timeout,
  );

  it("guide and schemas of the core tools take at most 3,500 tokens", async () => {
    const [call] = await converse(1, 1, { tools: ["core"] });
    const system = call?.system.replace(/<window windowId="persona"[\s\S]*?<\/window>/, "") ?? "";
    expect(countTokens(system) + countTokens(call?.texts[0] ?? "")).toBeLessThan(3_500);
  });
});
