import { inlineCode } from "../../adapters/matrix/markdown.ts";
import { digest } from "../../base/lib/ids.ts";
import type { Agent } from "../../domain/agents/agent.ts";
import { inPlainText } from "../../domain/speech/plain-text.ts";
import { utter } from "../../domain/speech/utter.ts";
import type { StoredEvent } from "../../domain/tables/events.ts";
import type { OutboxDraft } from "../../domain/tables/outbox.ts";
import type { SealedEvent } from "../../domain/tables/sealed-events.ts";

const notice = (speaker: Pick<Agent, "userId">, { roomId }: StoredEvent, text: string, key: string): OutboxDraft[] =>
  utter({ sender: speaker.userId, roomId, text, isNotice: true, key });

/** Says once to a person that they may not talk to an agent, instead of keeping silent. */
export const closedDoorNotice = (agent: Agent, event: StoredEvent): OutboxDraft[] =>
  notice(
    agent,
    event,
    `${event.sender} has no permission to talk to me here. Those who run this bridge can give it ("chat" or more).`,
    digest("closed", agent.userId, event.roomId, event.sender),
  );

/** Says to a person that their messages are read, but not each of them answered. */
export const tooFastNotice = (agent: Agent, event: StoredEvent): OutboxDraft[] =>
  notice(
    agent,
    event,
    "Messages come faster than I may answer. I still read them; write again in a minute for an answer.",
    digest("too fast", agent.userId, event.eventId),
  );

/** Says once in a room that the agent is paused. */
export const pausedNotice = (agent: Agent, event: StoredEvent): OutboxDraft[] =>
  agent.pausedAt === null
    ? []
    : notice(
        agent,
        event,
        "I am paused, and answer nobody until those who run this bridge let me go on.",
        digest("paused", agent.userId, event.roomId, agent.pausedAt.getTime()),
      );

/** Says once in a room that these of us can neither read it nor answer there. */
export const cannotReadNotice = (speakers: readonly Pick<Agent, "userId">[], event: StoredEvent): OutboxDraft[] =>
  speakers.flatMap((speaker) =>
    inPlainText(
      notice(
        speaker,
        event,
        "This room is encrypted in a way that I cannot read, and so I cannot answer here. Please talk to me in another room.",
        digest("encrypted", speaker.userId, event.roomId),
      ),
    ),
  );

/** Says to a person why nothing follows from a message in a room that those to whom it is said cannot write in. */
export const plainTextNotice = (speaker: Pick<Agent, "userId">, event: StoredEvent): OutboxDraft[] =>
  inPlainText(
    notice(
      speaker,
      event,
      "I do nothing with your message, because this room is encrypted in a way in which I cannot answer. Please talk to me in another room.",
      digest("plain text", speaker.userId, event.eventId),
    ),
  );

/** Says once for a key that has not come what cannot be read, and why. */
export const sealedNotice = ({ reason, roomId, sessionId, userId }: SealedEvent, event: StoredEvent): OutboxDraft[] => {
  const speaker = { userId };
  if (event.source === "history" || reason === "early")
    return notice(
      speaker,
      event,
      "I cannot read what was said here before I came, or before I got the device that I have now: it was not encrypted for it.",
      digest("early", userId, roomId),
    );
  const withheld = /^withheld: (.*)$/s.exec(reason);
  const text = withheld
    ? `I cannot read a message of ${event.sender}: the client that sent it gives me no key. It says: ${inlineCode(withheld[1] ?? "")}`
    : `I cannot read a message of ${event.sender}: its key has not reached me. I go on waiting for it; please write the message again.`;
  return notice(speaker, event, text, digest("sealed", roomId, sessionId));
};
