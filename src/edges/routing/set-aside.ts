import type { Database } from "../../adapters/database/connection.ts";
import { HomeserverError } from "../../adapters/matrix/client.ts";
import { inlineCode } from "../../adapters/matrix/markdown.ts";
import { messageOf, RetryError } from "../../base/lib/errors.ts";
import { digest, type UserId } from "../../base/lib/ids.ts";
import type { Log } from "../../base/lib/log.ts";
import { utter } from "../../domain/speech/utter.ts";
import { type Effects, settle } from "../../domain/tables/effects.ts";
import { Events, type PendingEvent } from "../../domain/tables/events.ts";
import type { RoomContext } from "../../domain/tables/room-context.ts";
import type { Judge } from "./judge.ts";
import { project } from "./project.ts";

/** An event is tried so often; each time what comes behind it waits. */
const attemptsMost = 5;

/** True if the event is not to blame for the failure, which passes by itself. */
export const isPassing = (error: unknown): boolean =>
  error instanceof RetryError || (error instanceof HomeserverError && !error.isFinal);

interface Parts {
  readonly database: Database;
  readonly judge: Pick<Judge, "ignores" | "isCommand" | "kindOf">;
  readonly botUserId: UserId;
  readonly log: Log;
  readonly tellOperators: (text: string, key: string) => void;
}

/** Events whose routing fails again and again: none of them holds up its room for ever. */
export class SetAside {
  readonly #parts: Parts;
  readonly #attempts = new Map<number, number>();

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /**
   * Counts a failure. The last one settles the event without what follows from it, keeps word of it among what could not
   * be stored, and tells operators, and the person whose command it was; the effects are what it does in its room.
   * @throws the error itself, where the event is to be tried again
   */
  async countFailure(event: PendingEvent, room: RoomContext, error: unknown): Promise<Effects> {
    const { database, log, tellOperators } = this.#parts;
    if (isPassing(error)) throw error;
    const attempts = (this.#attempts.get(event.seq) ?? 0) + 1;
    this.#attempts.set(event.seq, attempts);
    if (attempts < attemptsMost) throw error;
    const { eventId, roomId, sender, type } = event;
    const reason = `it could not be routed: ${messageOf(error)}`;
    log.error({ err: error, event: eventId }, "an event is set aside: its routing failed again and again");
    // The content stays in its own row alone, where redactions find it.
    const raw = Buffer.from(JSON.stringify({ event_id: eventId, room_id: roomId, sender, type }));
    await new Events(database).quarantine([{ digest: digest("set aside", eventId), reason, raw }]);
    const effects = await this.#settle(event, await this.#remains(event, room));
    tellOperators(
      `An event in ${roomId} could not be routed ${attemptsMost} times and is set aside (${inlineCode(eventId)}, ${inlineCode(type)}, of ${sender}): ${inlineCode(messageOf(error))}. The log has more.`,
      `set aside ${eventId}`,
    );
    this.#attempts.delete(event.seq);
    return effects;
  }

  forget({ seq }: PendingEvent): void {
    this.#attempts.delete(seq);
  }

  /** Keeps the change that the event makes in its room, and a word to the person who gave a command. */
  async #remains(event: PendingEvent, room: RoomContext): Promise<Effects> {
    const { judge } = this.#parts;
    const { body, "org.clevernet.key": key } = event.content;
    const isOurs = judge.kindOf(event.sender) !== "human";
    const isSaid = event.type === "m.room.message" && event.replaces === null && !(await judge.ignores(event.sender));
    return {
      ...project(event, judge.kindOf),
      ...(isSaid && { shownChars: typeof body === "string" ? body.length : 0 }),
      ...(isOurs && typeof key === "string" && { echoOf: key }),
      ...(isSaid && judge.isCommand(event) && { outbox: this.#apology(event, room) }),
    };
  }

  #apology({ eventId, roomId }: PendingEvent, room: RoomContext) {
    const agent = room.agents.find(({ membership }) => membership === "join");
    const sender = room.hasBotJoined ? this.#parts.botUserId : agent?.userId;
    const text =
      "Something went wrong with this command, and it was given up. What was done of it is not known: look before you write it again. Those who run this bridge can read about it in its log.";
    const key = digest("set aside", eventId);
    return sender === undefined ? [] : utter({ sender, roomId, text, replyTo: eventId, isNotice: true, key });
  }

  /** With nothing but its mark, where even the rest cannot be written. */
  async #settle(event: PendingEvent, remains: Effects): Promise<Effects> {
    const { database, log } = this.#parts;
    try {
      await settle(database, event, remains);
      return remains;
    } catch (error) {
      if (isPassing(error)) throw error;
      log.error({ err: error, event: event.eventId }, "nothing of an event that is set aside can be written");
      await settle(database, event, {});
      return {};
    }
  }
}
