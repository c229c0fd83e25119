import { type ModelRequest, newMessages, type ScriptedModel, type Step, toolName } from "./scripted-model.ts";
import { answer, callsOf } from "./sight.ts";
import type { Message, TestUser } from "./user.ts";

/** Has the model do what it is told, by whomever: `do 1 TOOL JSON` is called as it is written, then `RESULT 1: …` said. */
export const obey = (model: ScriptedModel): ScriptedModel =>
  model.on(/\bdo \d+ /, (request: ModelRequest): Step => {
    const words = newMessages(request).map(({ body }) => body);
    const [, number, name = "", json = ""] = /\bdo (\d+) (\w+) (.*)/.exec(words.join("\n")) ?? [];
    const [call] = callsOf(request);
    return call?.result === undefined
      ? { call: toolName(request, name), arguments: json }
      : answer(request, `RESULT ${number}: ${call.result}`);
  });

/** A card as it was sent, not as it reads once it is decided. */
export const isCard = ({ content }: Message): boolean =>
  "org.clevernet.operation" in content && !("m.new_content" in content);

export const isResult =
  (number: number) =>
  ({ body }: Message): boolean =>
    body.startsWith(`RESULT ${number}: `);

/** Result that the agent got when it did as it was told. */
export async function resultOf(user: TestUser, room: string, number: number, within = 15_000): Promise<string> {
  const { body } = await user.waitForMessage(room, isResult(number), { within });
  return body.slice(`RESULT ${number}: `.length);
}
