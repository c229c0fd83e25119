import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { messageContent, splitText, toMatrixText } from "../../../src/adapters/matrix/markdown.ts";
import type { EventId, UserId } from "../../../src/base/lib/ids.ts";

const formatted = (text: string) => toMatrixText(text).formatted;

describe("Markdown", () => {
  it.each([
    "hello",
    "two lines\nof text",
    "a paragraph\n\nanother one",
    "2 * 3 = 6, a_b_c, <tag>, x & y, 5 > 3",
    "see https://example.org/a?b=c",
    "[no link](javascript:alert(1))",
    "",
  ])("has no formatted text where it looks the same without: %j", (text) => {
    expect(toMatrixText(text)).toEqual({ body: text, mentions: [] });
  });

  it.each([
    ["**a** _b_ ~~c~~ `d`", "<strong>a</strong> <em>b</em> <del>c</del> <code>d</code>"],
    ["a\nb *c*", "a<br />\nb <em>c</em>"],
    ["a\n\n*b*", "<p>a</p>\n<p><em>b</em></p>"],
    ["# T", "<h1>T</h1>"],
    ["3. a\n4. b", '<ol start="3">\n<li>a</li>\n<li>b</li>\n</ol>'],
    ["```ts x\na<b\n```", '<pre><code class="language-ts">a&lt;b\n</code></pre>'],
    ["[a](https://e.org/?x=1&y=2)", '<a href="https://e.org/?x=1&amp;y=2">a</a>'],
    ["[mail](mailto:a@b.org)", '<a href="mailto:a@b.org">mail</a>'],
    ["**a** <b>c</b>", "<strong>a</strong> &lt;b&gt;c&lt;/b&gt;"],
    [String.raw`\*a\*`, "*a*"],
    ["&amp;", "&amp;"],
    ["|a|b|\n|-|:-|\n|1|2|", expect.stringMatching(/^<table>.*<td>2<\/td>.*<\/table>$/s)],
  ])("becomes HTML: %j", (text, html) => {
    expect(formatted(text)).toEqual(html);
  });

  it("keeps its own text as the body", () => {
    expect(toMatrixText("**a**").body).toBe("**a**");
  });

  it.each([
    "**a** [x](javascript:alert(1))",
    "**a** [x](data:text/html,x)",
    "**a** [x](vbscript:x)",
    "**a** [x](//evil.org)",
    "**a** [x](/relative)",
    "**a** [x](mxc://evil.org/secret)",
  ])("links nowhere but to web and mail: %j", (text) => {
    expect(formatted(text)).not.toContain("<a");
  });

  it("shows no picture, whose address could carry a secret away", () => {
    expect(formatted("![alt](https://evil.org/?q=secret)")).toBe('!<a href="https://evil.org/?q=secret">alt</a>');
    expect(formatted("**a** ![alt](mxc://evil.org/secret)")).not.toMatch(/<img|src/);
  });

  it("loses no line that looks like a definition", () => {
    expect(formatted("**a**\n\n[note]: https://e.org")).toContain("[note]: https://e.org");
  });

  it("is safe as HTML, whatever the text", () => {
    const piece = fc.oneof(
      fc.constantFrom(
        ..."* ** _ ` ``` ~~~ [ ]( ) ![ < > & \" ' \n # - | javascript: data: <script> </script> onload= style=".split(
          " ",
        ),
        "<img src=x onerror=alert(1)>",
        '<a href="javascript:alert(1)">',
        "```js onload=x\n",
        "&#106;avascript:",
        "\n\n",
        "\n|a|b|\n|-|:-:|\n",
        "\u0000",
      ),
      fc.string({ unit: "binary", maxLength: 5 }),
    );
    const tag =
      /^<\/?(?:h[1-6]|p|blockquote|ul|ol(?: start="\d+")?|li|pre|code(?: class="language-[^"<>]*")?|hr \/|br \/|em|strong|del|table|thead|tbody|tr|t[hd]|a(?: href="(?:https?:\/\/|mailto:)[^"<>]*")?)>$/i;
    fc.assert(
      fc.property(fc.array(piece, { minLength: 1, maxLength: 30, size: "max" }), (pieces) => {
        for (const [found] of (formatted(pieces.join("")) ?? "").matchAll(/<[^>]*>?/g)) expect(found).toMatch(tag);
      }),
      { numRuns: 2_000 },
    );
  });

  it("can be sent, whatever the text", () => {
    expect(toMatrixText("a\0b\r\nc\td\u0007\u009F").body).toBe("a\uFFFDb\nc\td\uFFFD\uFFFD");
    expect(toMatrixText("\ud800 \u{1F600}").body).toBe("\uFFFD \u{1F600}");
  });

  describe("mentions", () => {
    const members = ["@mia:x.org", "@a_b_c:x.org", "@tom:x.org:8448"] as UserId[];
    const mentions = (text: string) => toMatrixText(text, members).mentions;

    it("members whose ids stand in the text, once", () => {
      expect(mentions("@mia:x.org, @mia:x.org and **@a_b_c:x.org**.")).toEqual(["@mia:x.org", "@a_b_c:x.org"]);
      expect(mentions("ask @tom:x.org:8448: now")).toEqual(["@tom:x.org:8448"]);
      expect(mentions("[@mia:x.org](https://matrix.to/#/@mia:x.org)")).toEqual(["@mia:x.org"]);
    });

    it("nobody else, and nobody in code or within other words", () => {
      for (const text of [
        "@eve:x.org",
        "`@mia:x.org`",
        "```\n@mia:x.org\n```",
        "@mia:x.org.evil.org",
        "a@mia:x.org",
        "mia",
      ]) {
        expect(mentions(text), text).toEqual([]);
      }
    });
  });
});

describe("message content", () => {
  const noPreviews = { "m.url_previews": [], "com.beeper.linkpreviews": [] };
  const thread = { root: "$root" as EventId, latest: "$newest" as EventId };
  const replyTo = "$a" as EventId;

  it("is a plain text that mentions nobody", () => {
    expect(messageContent({ markdown: "hello @mia:x.org", key: "k" })).toEqual({
      msgtype: "m.text",
      body: "hello @mia:x.org",
      "m.mentions": {},
      ...noPreviews,
      "org.clevernet.key": "k",
    });
  });

  it("is formatted, mentions members, and may be a notice", () => {
    const members = ["@mia:x.org" as UserId];
    expect(messageContent({ markdown: "**hi** @mia:x.org", members, isNotice: true, key: "k" })).toEqual({
      msgtype: "m.notice",
      body: "**hi** @mia:x.org",
      format: "org.matrix.custom.html",
      formatted_body: "<strong>hi</strong> @mia:x.org",
      "m.mentions": { user_ids: ["@mia:x.org"] },
      ...noPreviews,
      "org.clevernet.key": "k",
    });
  });

  it("stands in a thread, with the fallback for clients that know none", () => {
    expect(messageContent({ markdown: "a", thread, key: "k" })).toMatchObject({
      "m.relates_to": {
        rel_type: "m.thread",
        event_id: "$root",
        is_falling_back: true,
        "m.in_reply_to": { event_id: "$newest" },
      },
    });
  });

  it("replies, in a thread and outside", () => {
    expect(messageContent({ markdown: "a", replyTo, key: "k" })).toMatchObject({
      "m.relates_to": { "m.in_reply_to": { event_id: "$a" } },
    });
    expect(messageContent({ markdown: "a", thread, replyTo, key: "k" })).toMatchObject({
      "m.relates_to": { rel_type: "m.thread", is_falling_back: false, "m.in_reply_to": { event_id: "$a" } },
    });
  });

  it("fits into an event, whatever the text of 16,000 characters", () => {
    for (const markdown of ["`&`", "\u5B57*\u5B57*", "\0", '"', "\u{1F600}", "> "].map((unit) => unit.repeat(16_000))) {
      const content = messageContent({ markdown: markdown.slice(0, 16_000), key: "k" });
      expect(Buffer.byteLength(JSON.stringify(content))).toBeLessThan(60_000);
    }
  });
});

describe("a long text", () => {
  const text = fc
    .array(
      fc.oneof(
        fc.string({ unit: "binary", maxLength: 30 }),
        fc.constantFrom("\n", "\n\n", " ", "```", "\n```js\n", "\n```\n", "\n  ~~~~\n", "word ", "\u{1F600}"),
      ),
      { minLength: 10, maxLength: 60, size: "max" },
    )
    .map((pieces) => pieces.join(""));
  const limit = fc.integer({ min: 16, max: 200 });

  it("is left whole when it fits", () => {
    expect(splitText("a\n\nb", 16)).toEqual(["a\n\nb"]);
    expect(splitText("", 16)).toEqual([""]);
  });

  it("is cut between paragraphs, else lines, else words, else characters", () => {
    expect(splitText("one two\n\nthree four\nfive", 20)).toEqual(["one two\n\n", "three four\nfive"]);
    expect(splitText("one two\nthree four five", 20)).toEqual(["one two\n", "three four five"]);
    expect(splitText("one two three four five", 20)).toEqual(["one two three ", "four five"]);
    expect(splitText("a".repeat(30), 20)).toEqual(["a".repeat(14), "a".repeat(16)]);
  });

  it("has no part over the limit", () => {
    fc.assert(
      fc.property(text, limit, (whole, most) => {
        for (const part of splitText(whole, most)) expect(part.length).toBeLessThanOrEqual(most);
      }),
    );
  });

  it("is its parts, one after the other, where no code block is cut", () => {
    fc.assert(
      fc.property(text, limit, (whole, most) => {
        const plain = whole.replaceAll(/[`~]/g, "");
        expect(splitText(plain, most).join("")).toBe(plain);
      }),
    );
  });

  it("loses nothing where a code block is cut", () => {
    const letters = (value: string) => value.replaceAll(/^ {0,3}(?:`{3,}[^`\n]*|~{3,}.*)$|\s/gm, "");
    fc.assert(
      fc.property(
        fc.array(fc.constantFrom("word ", "line\n", "```js\n", "```\n", "\n"), {
          minLength: 10,
          maxLength: 80,
          size: "max",
        }),
        limit,
        (pieces, most) => {
          const whole = pieces.join("").replaceAll(/(?<=[^\n])```/g, "\n```");
          expect(letters(splitText(whole, most).join("\n"))).toBe(letters(whole));
        },
      ),
    );
  });

  it("is never cut within a character", () => {
    fc.assert(
      fc.property(
        fc.array(fc.constantFrom("a", "\u{1F600}"), { minLength: 40, maxLength: 200, size: "max" }),
        limit,
        (letters, most) => {
          for (const part of splitText(letters.join(""), most)) expect(part.isWellFormed()).toBe(true);
        },
      ),
    );
  });

  it("closes a code block that is cut, and opens it again", () => {
    const parts = splitText(`Look:\n\`\`\`js\n${"let x = 1;\n".repeat(10)}\`\`\`\ndone`, 64);
    expect(parts[0]).toBe(`Look:\n\`\`\`js\n${"let x = 1;\n".repeat(3)}\`\`\``);
    expect(parts[1]).toMatch(/^```js\nlet x = 1;\n/);
    expect(parts.at(-1)).toMatch(/^```js\n(?:let x = 1;\n)+```\ndone$/);
  });

  it("does not take a shorter or different fence for the end of a code block", () => {
    const [first, second] = splitText(`~~~~\n\`\`\`\n~~~\n${"code\n".repeat(10)}~~~~`, 48);
    expect(first).toMatch(/\n~~~~$/);
    expect(second).toMatch(/^~~~~\ncode/);
  });
});
