import type { EventId, RoomId, UserId } from "../lib/ids.ts";
import type { Element } from "../lmml/element.ts";
import type { RecalledView } from "./recalled-view.ts";

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
/** The words `quiet for` are followed by the time for which nobody has said anything. */
export type WakeReason = (typeof wakeReasons)[number] | `quiet for ${string}`;

/** A file that a message carries. */
export interface MediaView {
  /** Its name, where the message's body says something else. */
  readonly name?: string | undefined;
  /** Path in the virtual file system, once it is there. */
  readonly path?: string | undefined;
  readonly contentType?: string | undefined;
  readonly bytes?: number | undefined;
  /** Pixels, of images. */
  readonly width?: number | undefined;
  readonly height?: number | undefined;
  /** Why it is not there. */
  readonly missing?: string | undefined;
}

interface TimelineEvent {
  readonly eventId: EventId;
  /** The number that it has in its room; undefined where it has none. */
  readonly number?: number | undefined;
  /** Numbers of the events that it relates to, by their ids. */
  readonly numbers?: Readonly<Record<string, number>> | undefined;
  readonly roomId: RoomId;
  readonly at: Date;
  readonly sender: UserId;
}

/** Something that happened in a room, as the agent may see it. Texts are as they came: rendering makes them safe. */
export type TimelineEntry =
  | (TimelineEvent & {
      readonly kind: "message";
      readonly messageType: string;
      readonly body: string;
      readonly threadId?: EventId | undefined;
      readonly replyTo?: EventId | undefined;
      readonly isEdited?: boolean | undefined;
      /** The formatted text says something else than the body, which alone is shown. */
      readonly formattedDiffers?: boolean | undefined;
      /** Nobody between its sender and this bridge could read or change it. */
      readonly isEncrypted?: boolean | undefined;
      readonly media?: MediaView | undefined;
    })
  | (TimelineEvent & {
      readonly kind: "roomEvent";
      readonly eventType: string;
      /** User whose membership changed, and the new state. */
      readonly target?: UserId | undefined;
      readonly membership?: string | undefined;
      /** Sign of a reaction, and the event that it is to. */
      readonly reaction?: { readonly key: string; readonly to: EventId } | undefined;
    });

/** A question that was asked about a window's content, with the answer of a submodel. */
export interface WindowQuery {
  readonly query: string;
  readonly answer: string;
}

export type WindowState = "normal" | "maximized" | "minimized";

/** Change to a window that is always there: it holds until the turn ends. */
export interface WindowChange {
  readonly state: WindowState;
  readonly queries: readonly WindowQuery[];
  /** The first line that is shown, where it was scrolled. */
  readonly top?: number | undefined;
  readonly height?: number | undefined;
}

/** A window that was opened, as one conversation may see it now. */
export interface WindowView {
  readonly windowId: string;
  readonly srcType: "file" | "search" | "page" | "web" | "video" | "chatHistory";
  readonly src: string;
  readonly contentType: string;
  /** Somebody in the audience may not read the source: that it is closed is all that is shown. */
  readonly isClosed: boolean;
  /** Size of the whole content. */
  readonly lines: number;
  readonly chars: number;
  /** Content of the viewport: text, or elements, each of which is a line. Empty where the window is minimized. */
  readonly shown: string | readonly Element[];
  /** Number of the first line in `shown`. */
  readonly top: number;
  /** `shown` ends before the viewport does: the window's limit of characters was reached. */
  readonly isTruncated: boolean;
  /** Written by those who may be trusted with markup: shown as it is where nothing in it can be taken for a tag. */
  readonly isRaw: boolean;
  readonly state: WindowState;
  readonly isPinned: boolean;
  readonly isSystem: boolean;
  /** Untrusted people wrote some of it. */
  readonly isTainted?: boolean | undefined;
  /** Turns, this one included, after which it closes; undefined is never. */
  readonly closesIn?: number | undefined;
  /** Always shows its source as it is now. */
  readonly hasAutorefresh?: boolean | undefined;
  /** Shows its source as it was when it was opened or last refreshed. */
  readonly isRefreshable?: boolean | undefined;
  readonly title?: string | undefined;
  readonly attributes?: Readonly<Record<string, string>> | undefined;
  readonly queries: readonly WindowQuery[];
}

export interface RoomMember {
  readonly userId: UserId;
  /** One of those who run the bridge; power in the room is nothing to be trusted. */
  readonly isAdmin: boolean;
  readonly isYou: boolean;
}

/** A room as one conversation of the agent may see it. */
export interface RoomView {
  readonly roomId: RoomId;
  readonly name: string;
  readonly isDirect: boolean;
  /** Somebody in the audience may not read this room: only that it is there, and `unread`, are shown. */
  readonly isClosed: boolean;
  /** Members whom the agent should know of first come first. */
  readonly members: readonly RoomMember[];
  /** Number of all members; `members` may hold fewer. */
  readonly memberCount: number;
  /** Events seen before, oldest first: the newest part of them. */
  readonly history: readonly TimelineEntry[];
  /** Size of the whole history: one line is one event. */
  readonly historyLines: number;
  readonly historyChars: number;
  /** Line of the last event in `history`, where its window was scrolled into the past. */
  readonly historyBottom?: number | undefined;
  readonly historyWindow?: WindowChange | undefined;
  /** Events that came since, oldest first. */
  readonly newEvents: readonly TimelineEntry[];
  /** Those of them that need not be shown, and give way to the others. */
  readonly known?: ReadonlySet<EventId> | undefined;
  /** Number of events that came since; `newEvents` may hold fewer. */
  readonly unread: number;
}

/** An event of a room, or an entry of the ephemeris, as it stands in a log. */
export interface LogEntry {
  readonly source: RoomId | "ephemeris";
  /** Time at which it was said, thought or done. */
  readonly at: Date | undefined;
  readonly eventId?: EventId | undefined;
  /** Without room and time: both are said where they change. */
  readonly element: Element;
}

/** All that was seen and thought before, in the order in which it came. */
export interface LogView {
  readonly entries: readonly LogEntry[];
  /** Sources of which something older is left out. */
  readonly leftOut: ReadonlySet<LogEntry["source"]>;
  /** Summary of what is left out. */
  readonly summary?: { readonly text: string; readonly isTainted: boolean } | undefined;
  /** Rooms that are named by a number: see `roomNumbers`. */
  readonly numbers?: ReadonlyMap<RoomId, number>;
}

export interface FileView {
  /** Path in the virtual file system, `share:/path`. */
  readonly path: string;
  readonly contentType: string;
  readonly text: string;
  readonly isTainted?: boolean | undefined;
  readonly window?: WindowChange | undefined;
}

/** A working file of the conversation, or its end. */
export interface StateFile {
  readonly text: string;
  /** Characters of the whole. */
  readonly chars: number;
  readonly isTainted?: boolean | undefined;
}

/** Working files that an agent is shown with every step; a file is undefined where nobody has written it. */
export interface StateView {
  /** NOW.md. */
  readonly status: StateFile | undefined;
  /** The end of LOG.md. */
  readonly activity: StateFile | undefined;
  /** The file facts.json, where the agent tidies it. */
  readonly facts?: StateFile | undefined;
}

/** Something that the conversation has set out to do. */
export interface TodoView {
  readonly number: number;
  readonly name: string;
  readonly isDone: boolean;
}

/** A text about how the agent's world works. */
export interface GuideView {
  readonly title: string;
  readonly text: string;
  /** Stands there without an element around it. */
  readonly isPlain?: boolean | undefined;
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
    /** Mode of the agent: kinds of operations that are carried out without asking. */
    readonly mode?: string | undefined;
    readonly persona: FileView | undefined;
    readonly scratchpad: FileView | undefined;
  };
  /** Guides in the order in which they are shown. */
  readonly guides: readonly GuideView[];
  readonly systemAdmins: readonly UserId[];
  /** The room that this is shown for; `HOME` for the home conversation, which has none. */
  readonly conversation: RoomId;
  /** The conversation's own room first (absent in the home conversation), then the others, latest activity first. */
  readonly rooms: readonly RoomView[];
  /** For layouts that only append. */
  readonly log: LogView;
  /** Rooms the agent is in beyond those in `rooms`. */
  readonly roomsLeftOut: number;
  /** Thoughts, calls and results of earlier turns that this conversation may see, oldest first. */
  readonly ephemeris: readonly Element[];
  /** Number of them in all, where these are only the last; undefined: these are all. */
  readonly ephemerisLines?: number | undefined;
  readonly ephemerisWindow?: WindowChange | undefined;
  /** Memories that fit the new events, the best first. */
  readonly recalled?: readonly RecalledView[] | undefined;
  /** The running turn: why and when it began, and what it has thought, called and been told so far. */
  readonly turn: {
    readonly id: number;
    readonly reason: WakeReason;
    readonly at: Date;
    /** Begin of the turn before it in this conversation. */
    readonly before?: Date | undefined;
    /** Time for which the room was quiet before what is new in it, such as `3 hours`; undefined: it was not for long. */
    readonly quietFor?: string | undefined;
    readonly entries: readonly Element[];
  };
  /**
   * Open windows on the agent's desk, the oldest first. Made anew for each step: a layout that appends steps shows a
   * window again when it has changed.
   */
  readonly windows: readonly WindowView[];
  /** By their numbers. */
  readonly todos: readonly TodoView[];
  /** Absent for agents that keep no working files. */
  readonly state?: StateView | undefined;
  /** Shown after the rooms: how to speak, and what the agent has to be reminded of in this step. */
  readonly reminders: readonly string[];
  /** The most characters that system and user message may have together. */
  readonly charsMax: number;
}

/** Texts that are sent to the model, with what it took to make them. */
export interface Prompt {
  readonly system: string;
  readonly user: string;
  /** Places in `user` up to which it is more often the same as in the next prompt than behind them. */
  readonly borders: readonly number[];
  /** Events that are readable in it: a redaction of one of them empties the kept render. */
  readonly eventIds: readonly EventId[];
  /** New events that found no room in it, and are to be shown in the next. */
  readonly waiting: readonly EventId[];
}
