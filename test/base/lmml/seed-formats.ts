import { type Element, element } from "../../../src/base/lmml/element.ts";

const event = { systemId: "matrix.org", roomId: "!abc:matrix.org", timestamp: "2024-12-25T12:00:00Z" };
const sender = "@user:matrix.org";

/** The core elements of the source document: name of the fact, tree, text. */
export const seedFormats: readonly (readonly [string, Element, string])[] = [
  [
    "a message",
    element("message", { ...event, sender, messageType: "m.text" }, "Hello world"),
    '<message systemId="matrix.org" roomId="!abc:matrix.org" timestamp="2024-12-25T12:00:00Z" sender="@user:matrix.org" messageType="m.text">Hello world</message>',
  ],
  [
    "a message in a thread, as a reply",
    element(
      "message",
      { ...event, sender, messageType: "m.text", threadId: "$thread123", replyTo: "$msg456" },
      "This is a threaded reply",
    ),
    '<message systemId="matrix.org" roomId="!abc:matrix.org" timestamp="2024-12-25T12:00:00Z" sender="@user:matrix.org" messageType="m.text" threadId="$thread123" replyTo="$msg456">This is a threaded reply</message>',
  ],
  [
    "a message that was sent",
    element("message", { ...event, sender, messageType: "m.text", sent: true }, "Message content"),
    '<message systemId="matrix.org" roomId="!abc:matrix.org" timestamp="2024-12-25T12:00:00Z" sender="@user:matrix.org" messageType="m.text" sent>Message content</message>',
  ],
  [
    "a room event",
    element("roomEvent", { ...event, eventType: "m.room.member", sender }),
    '<roomEvent systemId="matrix.org" roomId="!abc:matrix.org" timestamp="2024-12-25T12:00:00Z" eventType="m.room.member" sender="@user:matrix.org" />',
  ],
  [
    "a system event",
    element("systemEvent", { timestamp: "2024-12-25T12:00:00Z" }, "Agent hit maximum iterations"),
    '<systemEvent timestamp="2024-12-25T12:00:00Z">Agent hit maximum iterations</systemEvent>',
  ],
  [
    "the stamp of a wake",
    element("timestamp", { value: "2024-12-25T12:00:00Z", wakeReason: "timer", turnId: "42" }),
    '<timestamp value="2024-12-25T12:00:00Z" wakeReason="timer" turnId="42" />',
  ],
  [
    "a window with a query and raw content",
    element(
      "window",
      {
        windowId: "123",
        srcType: "file",
        src: "agents:/config.yaml",
        contentType: "text/yaml",
        lines: "150",
        chars: "3000",
        topLineNumber: "20",
        bottomLineNumber: "40",
        autoCloseInTurns: "2",
        title: "Configuration File",
        refreshable: true,
      },
      [
        element("queryResult", { query: "What port is configured?" }, "Port 8080 is configured"),
        element("content", { raw: true }, "port: 8080 # <unset>\n\n  host: a && b\n"),
      ],
    ),
    `<window windowId="123" srcType="file" src="agents:/config.yaml" contentType="text/yaml" lines="150" chars="3000" topLineNumber="20" bottomLineNumber="40" autoCloseInTurns="2" title="Configuration File" refreshable>
  <queryResult query="What port is configured?">Port 8080 is configured</queryResult>
  <content raw>port: 8080 # <unset>

  host: a && b
</content>
</window>`,
  ],
  [
    "a call of a function",
    element("functionCall", { id: "fc123", function: "SendMessage_abc123" }, [
      element("parameter", { name: "roomId" }, "!abc:matrix.org"),
      element("parameter", { name: "content" }, "Hello!\n\n- a < b"),
    ]),
    `<functionCall id="fc123" function="SendMessage_abc123">
  <parameter name="roomId">!abc:matrix.org</parameter>
  <parameter name="content">Hello!

- a &lt; b</parameter>
</functionCall>`,
  ],
  [
    "the result of a function",
    element("functionResult", { id: "fc123" }, [element("result", {}, "Message sent successfully")]),
    `<functionResult id="fc123">
  <result>Message sent successfully</result>
</functionResult>`,
  ],
  [
    "the results of a search",
    element("searchResult", { path: "agents:/docs/project-roadmap-2024.md", score: "1.0" }, [
      element("match", { line: "1" }, "project-roadmap-2024.md"),
    ]),
    `<searchResult path="agents:/docs/project-roadmap-2024.md" score="1.0">
  <match line="1">project-roadmap-2024.md</match>
</searchResult>`,
  ],
  [
    "a room without a name, with members",
    element("room", { systemId: "matrix.org", roomId: "ephemeris", roomName: "", loggedInAs: "@agent:matrix.org" }, [
      element("roomMember", { userId: "@admin:matrix.org", admin: true }),
      element("roomMember", { userId: "@agent:matrix.org", you: true }),
      element("newEvents"),
      element("roomFooter", { systemId: "matrix.org", roomId: "ephemeris" }),
    ]),
    `<room systemId="matrix.org" roomId="ephemeris" roomName="" loggedInAs="@agent:matrix.org">
  <roomMember userId="@admin:matrix.org" admin />
  <roomMember userId="@agent:matrix.org" you />
  <newEvents />
  <roomFooter systemId="matrix.org" roomId="ephemeris" />
</room>`,
  ],
];
