import { isDraft } from "../../adapters/matrix/draft.ts";
import { readMessage } from "../../adapters/matrix/message.ts";
import { systemClock } from "../../base/lib/clock.ts";
import { UserError } from "../../base/lib/errors.ts";
import type { RoomId } from "../../base/lib/ids.ts";
import { visible } from "../../base/lmml/visible.ts";
import type { DemoUser } from "./demo-user.ts";

const answerMs = 120_000;
/** Nothing more is expected when everybody has been silent for this long. */
const quietMs = 1_000;
const pollMs = 5_000;

export interface DemoExchange {
  readonly user: DemoUser;
  readonly roomId: RoomId;
  readonly text: string;
  readonly onAnswer: (text: string) => void;
  /** Throws when nobody can answer any more. */
  readonly check: () => Promise<void>;
}

/**
 * Says something in a room, and listens until the others have answered and type no more.
 * @throws UserError when no answer comes within two minutes
 */
export const exchange = async ({ user, roomId, text, onAnswer, check }: DemoExchange): Promise<void> => {
  let { since } = await user.news(roomId, undefined, 0);
  const question = await user.say(roomId, text);
  const deadline = systemClock.monotonic() + answerMs;
  let hasAsked = false;
  let hasAnswered = false;
  let isTyping = false;
  while (systemClock.monotonic() < deadline) {
    const isResting = hasAnswered && !isTyping;
    const news = await user.news(roomId, since, isResting ? quietMs : pollMs);
    since = news.since;
    if (isResting && news.events.length === 0 && !news.typing?.length) return;
    isTyping = news.typing ? news.typing.some((userId) => userId !== user.userId) : isTyping;
    for (const event of news.events) {
      const message = readMessage(event);
      const isWhole = message && !message.replaces && !isDraft(event.content);
      if (hasAsked && isWhole && event.sender !== user.userId) {
        onAnswer(visible(message.body.replaceAll(/\r\n?/g, "\n")));
        hasAnswered = true;
      }
      hasAsked ||= event.event_id === question;
    }
    await check();
  }
  if (!hasAnswered) throw new UserError(`There is no answer after ${answerMs / 1000} s.`);
};
