import type { EventId, RoomId, UserId } from "../lib/ids.ts";
import type { Element } from "../lmml/element.ts";

/** Why an agent starts to work, in the words that it is shown. */
export const wakeReasons = [
  "new event",
  "timer",
  "default mode",
  "schedule",
  "mailbox",
  "approval",
  "recovery",
  "manual",
] as const;
export type WakeReason = (typeof wakeReasons)[number];

/** Something that happened in a room, as the agent may see it. Texts are as they came: rendering makes them safe. */
export type TimelineEntry =
  | {
      readonly kind: "message";
      readonly eventId: EventId;
      readonly roomId: RoomId;
      readonly at: Date;
      readonly sender: UserId;
      readonly messageType: string;
      readonly body: string;
      readonly threadId?: EventId | undefined;
      readonly replyTo?: EventId | undefined;
      readonly edited?: boolean | undefined;
      /** The formatted text says something else than the body, which alone is shown. */
      readonly formattedDiffers?: boolean | undefined;
    }
  | {
      readonly kind: "roomEvent";
      readonly eventId: EventId;
      readonly roomId: RoomId;
      readonly at: Date;
      readonly eventType: string;
      readonly sender: UserId;
      /** Whom a membership event is about, and what they became. */
      readonly target?: UserId | undefined;
      readonly membership?: string | undefined;
    };

export interface RoomMember {
  readonly userId: UserId;
  readonly admin: boolean;
  readonly you: boolean;
}

/** A room as one conversation of the agent may see it. */
export interface RoomView {
  readonly roomId: RoomId;
  readonly name: string;
  readonly direct: boolean;
  /** Somebody in the audience may not read this room: only its name and `unread` are shown. */
  readonly closed: boolean;
  /** Those that the agent should know of first come first. */
  readonly members: readonly RoomMember[];
  /** How many members there are; `members` may hold fewer. */
  readonly memberCount: number;
  /** What was seen before, oldest first: the newest part of it. */
  readonly history: readonly TimelineEntry[];
  /** Size of the whole history, of which `history` is the end: one line is one event. */
  readonly historyLines: number;
  readonly historyChars: number;
  /** What came since, oldest first. */
  readonly newEvents: readonly TimelineEntry[];
  /** Number of events that came since; `newEvents` may hold fewer. */
  readonly unread: number;
}

export interface FileView {
  /** Path in the virtual file system, `share:/path`. */
  readonly path: string;
  readonly contentType: string;
  readonly text: string;
}

/** All that one step of a turn shows the agent, before it is cut to size and laid out. */
export interface World {
  readonly serverName: string;
  readonly now: Date;
  /** IANA name of the zone in which `currentDatetime` is written. */
  readonly timeZone: string;
  readonly agent: {
    readonly userId: UserId;
    readonly model: string;
    readonly systemPrompt: string;
    readonly postPrompt: string | null;
    readonly wakeUpTimerSeconds: number | null;
    readonly persona: FileView | undefined;
    readonly scratchpad: FileView | undefined;
  };
  /** Guides in the order in which they are shown. */
  readonly guides: readonly { readonly title: string; readonly text: string }[];
  readonly systemAdmins: readonly UserId[];
  /** The room that this is shown for; `HOME` for the home conversation, which has none. */
  readonly conversation: RoomId;
  /** The conversation's own room first (absent in the home conversation), then the others, latest activity first. */
  readonly rooms: readonly RoomView[];
  /** Rooms the agent is in beyond those in `rooms`. */
  readonly roomsLeftOut: number;
  /** Thoughts, calls and results of earlier turns that this conversation may see, oldest first. */
  readonly ephemeris: readonly Element[];
  /** The running turn: why and when it began, and what it has thought, called and been told so far. */
  readonly turn: {
    readonly id: number;
    readonly reason: WakeReason;
    readonly at: Date;
    readonly entries: readonly Element[];
  };
  /** Shown after the rooms: how to speak, and what the agent has to be reminded of in this step. */
  readonly reminders: readonly string[];
  /** The most characters that system and user message may have together. */
  readonly charsMax: number;
}

/** What is sent to the model, with what it took to make it. */
export interface Prompt {
  readonly system: string;
  readonly user: string;
  /** Events that are readable in it: a redaction of one of them empties the kept render. */
  readonly eventIds: readonly EventId[];
}
