import type { EventId, RoomId, UserId } from "../../../src/base/lib/ids.ts";
import { element } from "../../../src/base/lmml/element.ts";
import * as ephemeris from "../../../src/base/prompt/ephemeris.ts";
import { onlyFunctionsSpeak } from "../../../src/base/prompt/reminders.ts";
import type { MediaView, RoomMember, RoomView, TimelineEntry, World } from "../../../src/base/prompt/types.ts";

const member = (userId: string, role: { isAdmin?: true; isYou?: true } = {}): RoomMember => ({
  userId: userId as UserId,
  isAdmin: role.isAdmin ?? false,
  isYou: role.isYou ?? false,
});

export const message = (
  roomId: string,
  eventId: string,
  at: string,
  sender: string,
  body: string,
  more: {
    threadId?: string;
    replyTo?: string;
    isEdited?: boolean;
    formattedDiffers?: boolean;
    isEncrypted?: boolean;
    media?: MediaView;
  } = {},
): TimelineEntry => ({
  kind: "message",
  roomId: roomId as RoomId,
  eventId: eventId as EventId,
  at: new Date(at),
  sender: sender as UserId,
  messageType: "m.text",
  body,
  isEdited: more.isEdited,
  formattedDiffers: more.formattedDiffers,
  isEncrypted: more.isEncrypted,
  media: more.media,
  threadId: more.threadId as EventId | undefined,
  replyTo: more.replyTo as EventId | undefined,
});

export const room = (roomId: string, name: string, more: Partial<RoomView> = {}): RoomView => ({
  roomId: roomId as RoomId,
  name,
  isDirect: false,
  isClosed: false,
  members: [],
  memberCount: more.members?.length ?? 0,
  history: [],
  historyLines: more.history?.length ?? 0,
  historyChars:
    more.history?.reduce((chars, entry) => chars + (entry.kind === "message" ? entry.body.length : 0), 0) ?? 0,
  newEvents: [],
  unread: more.newEvents?.length ?? 0,
  ...more,
});

const general = "!abc123:matrix.org";

/** The world of the source document's complete chat interface: its names, times and figures. */
export const exampleWorld: World = {
  serverName: "matrix.org",
  now: new Date("2024-12-25T23:30:00Z"),
  timeZone: "America/Los_Angeles",
  agent: {
    userId: "@agent:matrix.org" as UserId,
    model: "anthropic/claude-3-opus",
    systemPrompt: "You are one of the agents of matrix.org.",
    postPrompt: null,
    wakeUpTimerSeconds: 3600,
    persona: {
      path: "agents:/personas/helper.md",
      contentType: "text/markdown",
      text: "# Helper\n\nYou know this place & like to show people around.\n\n- Look before you say that something is not there.\n- Ask where a request is unclear.\n",
    },
    scratchpad: {
      path: "agents:/scratchpad.txt",
      contentType: "text/plain",
      text: "TODO:\n- the question about Clevernet\n- the documentation\n",
    },
  },
  guides: [{ title: "Clevernet Matrix System on matrix.org", text: "How this world works.\n" }],
  systemAdmins: ["@admin:matrix.org" as UserId],
  conversation: general as RoomId,
  rooms: [
    room(general, "General Chat", {
      members: [
        member("@admin:matrix.org", { isAdmin: true }),
        member("@agent:matrix.org", { isYou: true }),
        member("@user:matrix.org"),
      ],
      history: [
        message(general, "$1", "2024-12-25T15:00:00Z", "@user:matrix.org", "Is anybody in?"),
        message(general, "$2", "2024-12-25T15:01:00Z", "@agent:matrix.org", "I am. What can I do?"),
      ],
      historyLines: 150,
      historyChars: 5000,
      newEvents: [message(general, "$3", "2024-12-25T15:30:00Z", "@user:matrix.org", "How does Clevernet work?")],
    }),
  ],
  log: { entries: [], leftOut: new Set() },
  roomsLeftOut: 0,
  ephemeris: [ephemeris.thought(new Date("2024-12-24T12:00:00Z"), "Asked about the API: sent the links.")],
  windows: [],
  todos: [],
  turn: { id: 42, reason: "new event", at: new Date("2024-12-25T15:30:00Z"), entries: [] },
  reminders: [onlyFunctionsSpeak],
  charsMax: 50_000,
};

const work = "!work:example.org";
const alice = "@alice:example.org";
const helper = "@agent_helper:example.org";
const at = new Date("2026-03-01T09:00:05Z");

/** Threads, replies, edits, a direct room, a room behind a wall, a running turn, text after everything. */
export const busyWorld: World = {
  ...exampleWorld,
  serverName: "example.org",
  now: new Date("2026-03-01T09:00:10Z"),
  timeZone: "Asia/Kathmandu",
  agent: {
    ...exampleWorld.agent,
    userId: helper as UserId,
    postPrompt: "Think first, then act.",
    wakeUpTimerSeconds: null,
    persona: undefined,
    scratchpad: undefined,
  },
  guides: [],
  conversation: work as RoomId,
  rooms: [
    room(work, "Work & <Play>", {
      members: [member(helper, { isYou: true }), member(alice)],
      memberCount: 12,
      history: [
        {
          kind: "roomEvent",
          eventId: "$j" as EventId,
          roomId: work as RoomId,
          at: new Date("2026-03-01T08:00:00Z"),
          eventType: "m.room.member",
          sender: alice as UserId,
          target: "@bob:example.org" as UserId,
          membership: "invite",
        },
        {
          kind: "roomEvent",
          eventId: "$r" as EventId,
          roomId: work as RoomId,
          at: new Date("2026-03-01T08:10:00Z"),
          eventType: "m.reaction",
          sender: alice as UserId,
          reaction: { key: "👍", to: "$j" as EventId },
        },
        message(work, "$a", "2026-03-01T08:30:00Z", alice, "Plan:\n  1. <b>look</b>\r\n  2. ask", {
          isEdited: true,
          isEncrypted: true,
        }),
      ],
      newEvents: [
        message(work, "$b", "2026-03-01T09:00:00Z", alice, "And this?", { threadId: "$a", replyTo: "$a" }),
        message(work, "$c", "2026-03-01T09:00:01Z", alice, "", {
          formattedDiffers: true,
          media: { path: `rooms:/${work}/media/cat.png`, contentType: "image/png", bytes: 5, missing: "too large" },
        }),
      ],
      unread: 5,
    }),
    room("!dm:example.org", "Alice", {
      isDirect: true,
      members: [member(helper, { isYou: true }), member(alice)],
      history: [message("!dm:example.org", "$d", "2026-02-28T20:00:00Z", alice, "Good night.")],
    }),
    room("!wall:example.org", "Board", {
      isClosed: true,
      members: [member("@secret:example.org")],
      history: [message("!wall:example.org", "$s", "2026-02-28T20:00:00Z", "@secret:example.org", "secret words")],
      unread: 7,
    }),
  ],
  roomsLeftOut: 3,
  ephemeris: [],
  todos: [
    { number: 2, name: "Read what Alice sent", isDone: true },
    { number: 3, name: "Answer <her> & Bob", isDone: false },
  ],
  turn: {
    id: 7,
    reason: "new event",
    at: new Date("2026-03-01T09:00:00Z"),
    before: new Date("2026-02-28T19:59:59.400Z"),
    entries: [
      ephemeris.thought(at, "Alice wants the second step."),
      ephemeris.functionCall("fc1", "SendMessage_k3f9", { roomId: work, content: "On it.", final: false }),
      ephemeris.functionResult(
        "fc1",
        element(
          "message",
          {
            systemId: "example.org",
            roomId: work,
            timestamp: "2026-03-01T09:00:06Z",
            sender: helper,
            messageType: "m.text",
            sent: true,
          },
          "On it.",
        ),
      ),
      ephemeris.systemEvent(at, "One step is left."),
    ],
  },
};
