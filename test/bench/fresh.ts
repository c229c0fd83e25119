import { answerTo } from "../support/answers.ts";
import { type ModelRequest, say, userText } from "../support/scripted-model.ts";

const roomIdIn = /<room [^>]*?roomId="([^"]+)"/;
const newEventsIn = /^ *<newEvents(?: [^>]*[^/])?>([\s\S]*?)^ *<\/newEvents>/gm;
const messagesIn = /<message [^>]*?roomId="([^"]+)"[^>]*? sender="([^"]+)"[^>]*>([^<]*)</g;

/**
 * What is new in the conversation's room, of plain texts in the layout `cacheable`: a model that is to answer at once
 * cannot read its whole prompt as LMML first. `self`: whose own messages do not count.
 */
export function freshMessages(request: ModelRequest, self: string): { roomId: string; bodies: string[] } {
  const text = userText(request);
  const roomId = roomIdIn.exec(text)?.[1] ?? "";
  const bodies = [...text.matchAll(newEventsIn)]
    .flatMap(([, events = ""]) => [...events.matchAll(messagesIn)])
    .flatMap(([, room, sender, body = ""]) => (room === roomId && sender !== self ? [body] : []));
  return { roomId, bodies };
}

/** Answers each of them in one step, the last of the turn. */
export const answerFresh = (request: ModelRequest, { roomId, bodies }: ReturnType<typeof freshMessages>) =>
  bodies.map((body, index) => say(request, roomId, answerTo(body), { final: index === bodies.length - 1 }));
