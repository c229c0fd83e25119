import { describe, expect, it } from "vitest";
import {
  approvalCard,
  type CardQuestion,
  inputMost,
  isCard,
  outcomeOfCard,
  shownInput,
} from "../../src/agent/approval-card.ts";
import type { EventId, RoomId, UserId } from "../../src/lib/ids.ts";
import { readReaction } from "../../src/matrix/reaction.ts";
import { relatingTo } from "../../src/matrix/relation.ts";

const card = { key: "card", roomId: "!room:test" as RoomId, sender: "@agent_helper:test" as UserId };
const question: CardQuestion = {
  id: 17,
  tool: "FS_Delete",
  kind: "delete",
  summary: "rooms:/!room:test/notes.md",
  input: { path: "rooms:/!room:test/notes.md" },
  reason: "it would delete something, and the mode is create",
  taint: [],
  approvers: ["@ann:test" as UserId],
  notified: ["@ann:test" as UserId],
  expiresAt: new Date("2026-01-02T12:00:00Z"),
  from: undefined,
  thread: undefined,
};
const made = (fields: Partial<CardQuestion> = {}) => approvalCard(card, { ...question, ...fields });
const contentOf = (fields: Partial<CardQuestion> = {}) => made(fields)[0]?.content as Record<string, unknown>;
const readKey = (content: unknown) =>
  readReaction(relatingTo(content as Record<string, unknown>, "$card" as EventId))?.key;
const bodyOf = (fields: Partial<CardQuestion> = {}) => String(contentOf(fields).body);

describe("a card", () => {
  it("says what is asked, why, by whom it can be decided, until when, and how", () => {
    expect(bodyOf()).toMatchInlineSnapshot(`
      "**Operation 17 waits for approval:** \`FS_Delete\` (delete)

      \`rooms:/!room:test/notes.md\`

      Why it is asked: it would delete something, and the mode is create.

      \`\`\`
      path: "rooms:/!room:test/notes.md"
      \`\`\`

      ✅ lets it be carried out, ❌ denies it; an answer to this message denies it with your reason. Or: \`!approve 17\`, \`!deny 17 why\`.

      May decide: @ann:test. Until 2026-01-02 12:00 UTC."
    `);
  });

  it("says which sub-agent asks", () => {
    expect(bodyOf({ subAgent: "planner/clerk" })).toContain("\n\nAsked by the sub-agent `planner/clerk`\n\n");
  });

  it("shows a text of several lines as it is, and every other value as JSON", () => {
    const input = { path: "a", content: "one\n```\n**two**", count: 3, tags: ["x\ny"], left: undefined };
    expect(shownInput(input)).toMatchInlineSnapshot(`
      "\`\`\`
      path: "a"
      count: 3
      tags: ["x\\ny"]
      \`\`\`

      \`content\`:

      \`\`\`\`
      one
      \`\`\`
      **two**
      \`\`\`\`"
    `);
  });

  it("says what the agent had read that is not trusted, and where it asks from", () => {
    const body = bodyOf({
      taint: ["@eve:test", "rooms:/!room:test/[click](https://evil.test).md"],
      from: "Helper (@agent_helper:test) in !room:test",
    });
    expect(body).toContain(
      "Read before, and not trusted: `@eve:test`, `rooms:/!room:test/[click](https://evil.test).md`.",
    );
    expect(body).toContain("Asked from: `Helper (@agent_helper:test) in !room:test`");
  });

  it("notifies those who are to be notified, and nobody whom the input names", () => {
    const approvers = ["@ann:test", "@ben:test"] as UserId[];
    const content = contentOf({ approvers, notified: ["@ben:test" as UserId], input: { text: "@ann:test" } });
    expect(content["m.mentions"]).toEqual({ user_ids: ["@ben:test"] });
    expect(content.msgtype).toBe("m.text");
  });

  it("makes what hides in the input visible, and lets no text leave its place", () => {
    const body = bodyOf({
      input: { path: "a\u202Eb", content: "x\n```\n`` ✅ approved\u0007" },
      summary: "a\n\n# b `c",
    });
    expect(body).toContain("a‹U+202E›b");
    expect(body).toContain("````\nx\n```\n`` ✅ approved‹U+0007›\n````");
    expect(body).toContain("``a # b `c``");
  });

  it("has its signs below it", () => {
    const signs = made().slice(1);
    expect(signs.map(({ kind, about, sender }) => ({ kind, about, sender }))).toEqual(
      Array(2).fill({ kind: "reaction", about: "card", sender: card.sender }),
    );
    expect(signs.map(({ content }) => readKey(content))).toEqual(["✅", "❌"]);
  });

  it("of an input that is too long to be shown can only be denied", () => {
    const input = { content: "x".repeat(inputMost) };
    expect(bodyOf({ input })).toContain("too long to be shown");
    expect(bodyOf({ input })).not.toContain("!approve");
    expect(made({ input })).toHaveLength(2);
    expect(shownInput({ content: "\u202E".repeat(inputMost / 8) })).toBeUndefined();
  });

  it("stands in the thread in which it is asked", () => {
    const thread = { root: "$root" as EventId, latest: "$latest" as EventId };
    expect(contentOf({ thread })["m.relates_to"]).toMatchObject({ rel_type: "m.thread", event_id: "$root" });
  });

  it("is known by programs", () => {
    expect(contentOf()["org.clevernet.operation"]).toBe(17);
    expect(isCard(contentOf())).toBe(true);
  });

  it("stays one event, however much is in it", () => {
    const long = '\u{1F600}"'.repeat(inputMost);
    const content = contentOf({
      input: { a: long.slice(0, inputMost - 4_000) },
      summary: long,
      reason: long,
      taint: Array(30).fill(long),
      approvers: Array(30).fill(`@${"a".repeat(240)}:test`),
    });
    expect(Buffer.byteLength(JSON.stringify(content))).toBeLessThan(60_000);
  });
});

describe("the outcome", () => {
  const outcome = outcomeOfCard(card, {
    id: 17,
    tool: "FS_Delete",
    summary: question.summary,
    state: "denied",
    by: "@ann:test" as UserId,
    because: "not *this*\none",
  });

  it("is an edit of the card that notifies nobody", () => {
    expect(outcome).toMatchInlineSnapshot(`
      {
        "about": "card",
        "content": {
          "body": "* ❌ **Operation 17** was denied by @ann:test: \`not *this* one\`.

      \`FS_Delete\`: \`rooms:/!room:test/notes.md\`",
          "format": "org.matrix.custom.html",
          "formatted_body": "<p>❌ <strong>Operation 17</strong> was denied by @ann:test: <code>not *this* one</code>.</p>
      <p><code>FS_Delete</code>: <code>rooms:/!room:test/notes.md</code></p>",
          "m.mentions": {},
          "m.new_content": {
            "body": "❌ **Operation 17** was denied by @ann:test: \`not *this* one\`.

      \`FS_Delete\`: \`rooms:/!room:test/notes.md\`",
            "format": "org.matrix.custom.html",
            "formatted_body": "<p>❌ <strong>Operation 17</strong> was denied by @ann:test: <code>not *this* one</code>.</p>
      <p><code>FS_Delete</code>: <code>rooms:/!room:test/notes.md</code></p>",
            "m.mentions": {},
            "msgtype": "m.notice",
            "org.clevernet.key": "card",
          },
          "m.relates_to": {
            "rel_type": "m.replace",
          },
          "msgtype": "m.notice",
          "org.clevernet.key": "E6_ZAt1fdaPSAkN1bJZKbN6Xhi-PgMD2cjnQVEb7Zck",
        },
        "key": "E6_ZAt1fdaPSAkN1bJZKbN6Xhi-PgMD2cjnQVEb7Zck",
        "kind": "message",
        "roomId": "!room:test",
        "sender": "@agent_helper:test",
      }
    `);
  });

  it.each(["approved", "denied", "expired", "done", "failed", "refused", "interrupted", "unknown"] as const)(
    "%s is told once",
    (state) => {
      const told = () => outcomeOfCard(card, { id: 17, tool: "x", summary: "x", state });
      expect(told().key).toBe(told().key);
      expect(told().key).not.toBe(
        outcomeOfCard({ ...card, key: "other" }, { id: 17, tool: "x", summary: "x", state }).key,
      );
    },
  );
});
