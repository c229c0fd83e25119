import { readView } from "../../src/edges/demo/rehearsal-view.ts";
import { type ModelRequest, newMessages, type Step, say } from "./scripted-model.ts";

/** Answers every new message of the conversation's room with one message that names it, and ends the turn. */
export function answerEach(request: ModelRequest): Step[] {
  const roomId = readView(request.body.messages)?.roomId ?? "";
  const messages = newMessages(request);
  return messages.map(({ body }, index) =>
    say(request, roomId, answerTo(body), { final: index === messages.length - 1 }),
  );
}

export const answerTo = (body: string): string => `answer to ${body.slice(0, 40)}`;
