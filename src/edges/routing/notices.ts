import { digest } from "../../base/lib/ids.ts";
import type { Agent } from "../../domain/agents/agent.ts";
import { utter } from "../../domain/speech/utter.ts";
import type { StoredEvent } from "../../domain/tables/events.ts";
import type { OutboxDraft } from "../../domain/tables/outbox.ts";

const notice = (speaker: Pick<Agent, "userId">, { roomId }: StoredEvent, text: string, key: string): OutboxDraft[] =>
  utter({ sender: speaker.userId, roomId, text, notice: true, key });

/** Says once to a person that they may not talk to an agent, instead of keeping silent. */
export const closedDoor = (agent: Agent, event: StoredEvent): OutboxDraft[] =>
  notice(
    agent,
    event,
    `${event.sender} has no permission to talk to me here. Those who run this bridge can give it ("chat" or more).`,
    digest("closed", agent.userId, event.roomId, event.sender),
  );

/** Says to a person that their messages are read, but not each of them answered. */
export const tooFast = (agent: Agent, event: StoredEvent): OutboxDraft[] =>
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

/** Says once in a room that the agents cannot read it. */
export const cannotRead = (agents: readonly Agent[], event: StoredEvent): OutboxDraft[] =>
  agents.flatMap((agent) =>
    notice(
      agent,
      event,
      "This room is encrypted, and I cannot read encrypted messages yet. Please talk to me in a room without encryption.",
      digest("encrypted", agent.userId, event.roomId),
    ),
  );

/** Says to a person why nothing follows from a message that they sent into an encrypted room without encryption. */
export const plainTextNotice = (speaker: Pick<Agent, "userId">, event: StoredEvent): OutboxDraft[] =>
  notice(
    speaker,
    event,
    "Your message was not encrypted, and this room is. I do nothing with it, because I cannot answer in an encrypted room yet. Please talk to me in a room without encryption.",
    digest("plain text", speaker.userId, event.eventId),
  );
