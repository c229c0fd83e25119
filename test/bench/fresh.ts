import { answerTo } from "../support/answers.ts";
import { type ModelRequest, say } from "../support/scripted-model.ts";

const newsIn = /^ {2}<room roomId="([^"]+)"(?: [^>]*[^/])?>\n {4}<newEvents(?: [^>]*[^/])?>([\s\S]*?)^ *<\/newEvents>/m;
const messagesIn = /<message [^>]*? sender="[^"]+"[^>]*>([^<]*)</g;

/**
 * Finds the new messages in the conversation's room, of plain texts in the layout `cacheable`: a model that is to answer
 * at once cannot read its whole prompt as LMML first.
 */
export function freshMessages(request: ModelRequest): { roomId: string; bodies: string[] } {
  const updates = request.body.messages
    .filter(({ role }) => role === "user")
    .map(({ content }) => newsIn.exec(content));
  const roomId = updates[0]?.[1] ?? "";
  const bodies = updates.flatMap((update) =>
    [...(update?.[2] ?? "").matchAll(messagesIn)].map(([, body = ""]) => body),
  );
  return { roomId, bodies };
}

/** Answers each of them in one step, the last of the turn. */
export const answerFresh = (request: ModelRequest, { roomId, bodies }: ReturnType<typeof freshMessages>) =>
  bodies.map((body, index) => say(request, roomId, answerTo(body), { final: index === bodies.length - 1 }));
