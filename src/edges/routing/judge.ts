import { isDraft } from "../../adapters/matrix/draft.ts";
import { isUnreadable } from "../../adapters/matrix/events.ts";
import { agentName, type Message, readMessage } from "../../adapters/matrix/message.ts";
import { digest, type UserId } from "../../base/lib/ids.ts";
import type { Log } from "../../base/lib/log.ts";
import type { Agent, AgentDirectory } from "../../domain/agents/agent.ts";
import { includesLevel } from "../../domain/rights/permissions.ts";
import type { Rights } from "../../domain/rights/rights.ts";
import type { Effects, WakeDraft } from "../../domain/tables/effects.ts";
import type { Events, PendingEvent, StoredEvent } from "../../domain/tables/events.ts";
import type { Outbox } from "../../domain/tables/outbox.ts";
import type { RoomContext } from "../../domain/tables/room-context.ts";
import type { Rooms } from "../../domain/tables/rooms.ts";
import { isCard } from "../../engine/operations/approval-card.ts";
import type { Approvals } from "../../engine/operations/approvals.ts";
import type { Scene, Sensor } from "../../engine/operations/sensor.ts";
import { carriedMediaOf, isAmongAgents } from "./carried.ts";
import { causeOf, sentKeyOf } from "./cause.ts";
import { refuseFlood, refuseWaking } from "./command-flood.ts";
import { judgeDraft } from "./drafts.ts";
import { applyEdits, isEditOf, judgePast, lengthOf } from "./edits.ts";
import { isServed, refusePlainText, tellOnJoin } from "./encrypted.ts";
import { Latecomers, type LatecomersParts } from "./late.ts";
import { answerMembership, approachOf, type Bot } from "./membership.ts";
import { cannotReadNotice, closedDoorNotice, pausedNotice, tooFastNotice } from "./notices.ts";
import { memoryOf } from "./observed.ts";
import { isShownState, project } from "./project.ts";
import type { Reactions } from "./reactions.ts";
import { redact, redactLate } from "./redactions.ts";
import type { Throttle } from "./throttle.ts";
import { type Teller, tellUnreadable } from "./unreadable.ts";

interface CommandHandler {
  /** True if a human's own message with this body may be a command. */
  isOne(body: string): boolean;
  /** Returns all that follows from the command; `undefined` if the message is none. */
  handle(command: {
    readonly event: StoredEvent;
    readonly message: Message;
    readonly room: RoomContext;
    readonly agentsHere: readonly Agent[];
  }): Promise<Pick<Effects, "outbox" | "unsaid" | "wakes" | "operation"> | undefined>;
}

export interface JudgeParts extends LatecomersParts {
  readonly events: Events;
  readonly rooms: Rooms;
  readonly outbox: Outbox;
  readonly directory: AgentDirectory;
  readonly rights: Rights;
  readonly sensors: readonly Sensor[];
  readonly commands: CommandHandler;
  readonly reactions: Pick<Reactions, "react" | "reply">;
  readonly approvals: Pick<Approvals, "withdraw">;
  readonly throttle: Throttle;
  readonly bot: Bot;
  readonly serverName: string;
  readonly botUserId: UserId;
  readonly log: Log;
}

/** Decides what follows from an event: which facts it changes, who wakes for it, and which notices are sent at once. */
export class Judge {
  readonly #parts: JudgeParts;
  readonly #latecomers: Latecomers;

  constructor(parts: JudgeParts) {
    this.#parts = parts;
    this.#latecomers = new Latecomers(parts);
  }

  readonly kindOf = (userId: UserId): "human" | "agent" | "bot" => {
    if (userId === this.#parts.botUserId) return "bot";
    return agentName(userId, this.#parts.serverName) === undefined ? "human" : "agent";
  };

  /** Agents and the bot are never ignored. */
  readonly ignores = async (userId: UserId): Promise<boolean> =>
    this.kindOf(userId) === "human" && this.#parts.rights.ignores(userId);

  /** True for a human's command: it may take long, and no later event depends on it. */
  isCommand({ content: { body, msgtype }, sender, type }: Pick<StoredEvent, "content" | "sender" | "type">): boolean {
    if (type !== "m.room.message" || msgtype !== "m.text" || typeof body !== "string") return false;
    return this.#parts.commands.isOne(body) && this.kindOf(sender) === "human";
  }

  /** Reads the event's room, where routing needs it; see `Latecomers`. */
  readRoom(event: StoredEvent, room: RoomContext): Promise<boolean> {
    return this.#latecomers.readRoom(event, room);
  }

  /** Judges one event; `room`: its room as known before the event. */
  async judge(event: PendingEvent, room: RoomContext): Promise<Effects> {
    const effects = await this.#latecomers.unsaid(event, await this.#judge(event, room));
    const echoOf = this.kindOf(event.sender) === "human" ? undefined : sentKeyOf(event);
    const isSilent = effects.shownChars === undefined || this.isCommand(event);
    const memory = isSilent ? undefined : await memoryOf(event, room, { ...this.#parts, kindOf: this.kindOf });
    return { ...effects, ...(echoOf !== undefined && { echoOf }), ...(memory && { memory }) };
  }

  async #judge(event: PendingEvent, room: RoomContext): Promise<Effects> {
    if (event.source === "history") return judgePast(event, this.#parts.events);
    const projected = project(event, this.kindOf);
    if (says(event) && (await this.ignores(event.sender))) return projected;
    if (room.kind === "thoughts") return { ...projected, outbox: await answerMembership(event, room, this.#parts) };
    switch (event.type) {
      case "m.room.member":
        return {
          ...projected,
          shownChars: 0,
          outbox: [...(await answerMembership(event, room, this.#parts)), ...(await tellOnJoin(event, this.#parts))],
        };
      case "m.room.message":
      case "m.sticker":
        return this.#judgeMessage(event, room);
      case "m.reaction":
        if (this.kindOf(event.sender) === "human") await this.#parts.reactions.react(event);
        else if (isCard(event.content)) return {};
        return (await isAmongAgents(event, this.kindOf, this.#parts.events)) ? { shownChars: 0 } : {};
      case "m.room.redaction":
        return { outbox: await redact(event, room, { ...this.#parts, kindOf: this.kindOf }) };
      case "m.room.encryption":
        // Anybody may send a message with the type of a state event.
        if (projected.state === undefined) return {};
        return { ...projected, outbox: isServed(room, event) ? [] : cannotReadNotice(await this.#oursIn(room), event) };
      case "m.room.encrypted":
        return { ...projected, outbox: isServed(room) ? [] : cannotReadNotice(await this.#oursIn(room), event) };
      default:
        return { ...projected, ...(isShownState(event.type) && event.stateKey !== null && { shownChars: 0 }) };
    }
  }

  async #judgeMessage(event: PendingEvent, room: RoomContext): Promise<Effects> {
    const message = readMessage(event);
    if (!message) return {};
    const { approvals, events } = this.#parts;
    const sender = this.kindOf(event.sender);
    if (isUnreadable(event.content)) {
      const meant = () => this.#addressees(event, message, room);
      return { outbox: sender === "human" ? await tellUnreadable(event, room, meant, this.#parts) : [] };
    }
    // Edits and redactions may come before their events.
    if (event.isOvertaken) await redactLate(event, room, { approvals, events, kindOf: this.kindOf });
    if (sender === "agent" && isDraft(event.content)) return judgeDraft(event, events);
    if (message.replaces !== undefined) {
      // An edit cannot be edited.
      const original = await events.find(message.replaces);
      if (original?.replaces === null) await applyEdits(events, original, event);
      if (original && isEditOf(event, original)) {
        await approvals.withdraw(original.eventId, "edited");
        // Its words were in what was redacted.
        if (Object.keys(original.content).length === 0) await events.redact(event.eventId);
      }
      return {};
    }
    if (event.isOvertaken) await applyEdits(events, event);
    const media = await carriedMediaOf(event, this.kindOf, this.#parts.rights);
    const effects: Effects = {
      shownChars: lengthOf(event),
      ...(media && { media }),
    };
    if (sender === "bot" || message.msgtype === "m.notice") return effects;
    if (room.state["m.room.encryption"] && !isServed(room)) {
      const meant = () => this.#addressees(event, message, room);
      return { ...effects, outbox: sender === "human" ? await refusePlainText(event, meant, this.#parts) : [] };
    }
    // A card asks people: no other agent answers it.
    if (sender === "agent" && isCard(event.content)) return effects;
    if (!room.hasBotJoined && room.agents.every((agent) => agent.userId === event.sender)) return effects;
    const agentsHere = await this.#agentsIn(room);
    if (agentsHere.length === 0 && !room.hasBotJoined) return effects;
    if (sender === "human" && message.msgtype === "m.text") {
      const tooMany = this.isCommand(event) && (await refuseFlood(event, room, agentsHere, this.#parts));
      if (tooMany) return { ...effects, outbox: tooMany };
      const said = await this.#parts.commands.handle({ event, message, room, agentsHere });
      if (said) {
        const refused = said.wakes?.length ? refuseWaking(event, room, agentsHere, this.#parts) : undefined;
        return { ...effects, ...(refused ? { outbox: refused } : said) };
      }
      if (await this.#parts.reactions.reply(event, message)) return effects;
      if (agentsHere.length === 0 && room.kind === "chat") {
        return { ...effects, outbox: await this.#parts.bot.onMessage(approachOf(event)) };
      }
    }
    if (room.kind === "control") return effects;
    const meant = await this.#whoIsMeant(event, message, room, agentsHere);
    if (meant.length === 0) return effects;
    const cause = await causeOf(event, sender === "human", this.#parts);
    if (!cause) return effects;
    if (cause.requester === undefined || !includesLevel(await this.#parts.rights.of(cause.requester), "chat")) {
      if (cause.isByAgent) return effects;
      const told = await this.#parts.bot.onClosedDoor(approachOf(event));
      return { ...effects, outbox: [...meant.flatMap(({ agent }) => closedDoorNotice(agent, event)), ...told] };
    }
    const awake = meant.filter(({ agent }) => agent.pausedAt === null);
    const paused = cause.isByAgent ? [] : meant.flatMap(({ agent }) => pausedNotice(agent, event));
    if (awake.length === 0) return { ...effects, outbox: paused };
    const admission = this.#parts.throttle.admit(cause.requester, event.roomId);
    if (admission !== "admitted") {
      const outbox =
        admission === "told" && !cause.isByAgent
          ? awake.slice(0, 1).flatMap(({ agent }) => tooFastNotice(agent, event))
          : [];
      return { ...effects, outbox };
    }
    const wakes = awake.map(
      ({ agent, reason }): WakeDraft => ({
        agent: agent.name,
        roomId: event.roomId,
        reason,
        key: digest("event", event.eventId, agent.name),
        eventId: event.eventId,
        position: event.position,
        chain: cause.chain,
        ...(cause.requester && { requester: cause.requester }),
      }),
    );
    return { ...effects, wakes, outbox: paused, ...(cause.isByAgent && { spendsChain: cause.chain }) };
  }

  async #whoIsMeant(event: StoredEvent, message: Message, room: RoomContext, agentsHere: readonly Agent[]) {
    const meant: { agent: Agent; reason: WakeDraft["reason"] }[] = [];
    const { events, log, sensors } = this.#parts;
    // If the homeserver or the database did not answer, the sensor did not fail: the event is judged again.
    const unanswered = new Set<unknown>();
    const ask = <Answer>(answer: Promise<Answer>): Promise<Answer> =>
      answer.catch((error: unknown) => {
        unanswered.add(error);
        throw error;
      });
    for (const agent of agentsHere) {
      if (agent.userId === event.sender) continue;
      const scene: Scene = {
        agent,
        event,
        message,
        room,
        agentsHere,
        senderOf: async (eventId) => (await ask(events.find(eventId)))?.sender,
        hasSpokenIn: (threadId) => ask(events.hasSpokenIn(event.roomId, threadId, agent.userId)),
      };
      for (const sensor of sensors) {
        try {
          const observation = await sensor.notice?.(scene);
          if (!observation) continue;
          if (await ask(this.#latecomers.comesTooLate(event, agent, room))) break;
          const noticed = { sensor: sensor.name, agent: agent.name, event: event.eventId };
          log.debug({ ...noticed, reason: observation.reason }, "an event concerns an agent");
          log.trace({ ...noticed, body: message.body }, "what was noticed");
          meant.push({ agent, reason: observation.reason });
          break;
        } catch (error) {
          if (unanswered.has(error)) throw error;
          log.error({ err: error, sensor: sensor.name, agent: agent.name, event: event.eventId }, "a sensor failed");
        }
      }
    }
    return meant;
  }

  /** Finds those to whom a message is said; a command is answered by the bot, or by one agent. */
  async #addressees(event: PendingEvent, message: Message, room: RoomContext): Promise<Teller[]> {
    const here = await this.#agentsIn(room);
    if (!this.isCommand(event)) return (await this.#whoIsMeant(event, message, room, here)).map(({ agent }) => agent);
    return room.hasBotJoined ? [{ userId: this.#parts.botUserId }] : here.slice(0, 1);
  }

  async #oursIn(room: RoomContext): Promise<{ userId: UserId }[]> {
    return [...(await this.#agentsIn(room)), ...(room.hasBotJoined ? [{ userId: this.#parts.botUserId }] : [])];
  }

  async #agentsIn(room: RoomContext): Promise<Agent[]> {
    const names = room.agents
      .filter((one) => one.membership === "join")
      .flatMap((one) => agentName(one.userId, this.#parts.serverName) ?? []);
    const agents = await Promise.all(names.map((name) => this.#parts.directory.findRecent(name)));
    return agents.filter((agent) => agent !== undefined);
  }
}

/** Says something to those in the room: who comes and goes, and what is taken back, is known of the ignored as well. */
const says = (event: StoredEvent): boolean => event.type !== "m.room.member" && event.type !== "m.room.redaction";
