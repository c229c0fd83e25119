import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { bytesDigest } from "../../../src/base/lib/ids.ts";
import { onEachDatabase } from "../../support/database.ts";
import { drawImage } from "../../support/media.ts";
import { type ModelRequest, say, toolName } from "../../support/scripted-model.ts";
import { Talk } from "../../support/talk.ts";
import { LocalWeb } from "../../support/web.ts";

/** Checksums of the images that a model is sent. */
const imagesIn = ({ body }: ModelRequest): string[] =>
  body.messages.flatMap(({ images = [] }) =>
    images.map((image) => bytesDigest(Buffer.from(image.replace(/^data:image\/png;base64,/, ""), "base64"))),
  );

onEachDatabase((database) => {
  describe("an address", () => {
    let web: LocalWeb;
    beforeAll(async () => {
      web = await LocalWeb.start();
    });
    afterAll(() => web.stop());

    const begin = async () => {
      let calls: (readonly [tool: string, input: object, before?: () => void])[] = [];
      const talk = await Talk.begin(database(), {
        web,
        reply: (request, roomId) => {
          const [next] = calls.splice(0, 1);
          next?.[2]?.();
          return next
            ? { call: toolName(request, next[0]), arguments: next[1] }
            : say(request, roomId, "done", { final: true });
        },
      });
      return { talk, script: (...wanted: typeof calls) => (calls = wanted) };
    };

    it("of an image is shown to the model as a picture, and again where it is another one now", async () => {
      const { talk, script } = await begin();
      const room = await talk.room();
      const [first, second] = await Promise.all([drawImage(40, 30), drawImage(40, 30)]);
      web.pages.set("/boat.png", { body: first, type: "image/png" });
      const url = web.url("/boat.png");
      script(
        ["BrowseWeb", { url }],
        [
          "Window_Action",
          { windowId: "page_1", action: "refresh" },
          () => web.pages.set("/boat.png", { body: second, type: "image/png" }),
        ],
      );
      await talk.ask(room, `Look at ${url}`);
      const last = talk.calls.at(-1);
      expect(imagesIn(last?.request as ModelRequest)).toEqual([first, second].map(bytesDigest));
      const shown = last?.texts.join("\n") ?? "";
      expect(shown).toContain("An image of 40 × 30 pixels");
      expect(shown).toContain("The page has changed.");
      await talk.stop();
    });

    it("of something that only says that it is an image is refused in words", async () => {
      const { talk, script } = await begin();
      web.pages.set("/fake.png", { body: "<script>alert(1)</script>", type: "image/png" });
      script(["BrowseWeb", { url: web.url("/fake.png") }]);
      await talk.ask(await talk.room(), `Look at ${web.url("/fake.png")}`);
      expect(talk.calls.at(-1)?.texts.at(-1)).toContain("cannot be shown: it is broken");
      await talk.stop();
    });

    it("of a page without any text says so, until there is some", async () => {
      const { talk, script } = await begin();
      const room = await talk.room();
      web.pages.set("/bare", { body: "<body><div id=root></div>", type: "text/html" });
      script(["BrowseWeb", { url: web.url("/bare") }]);
      await talk.ask(room, `Read ${web.url("/bare")}`);
      const shown = () => talk.calls.at(-1)?.texts.join("\n") ?? "";
      expect(shown()).toContain('note="the page has no text"');
      const windowId = /with ID (page_\d+)/.exec(shown())?.[1];
      script(["Window_Action", { windowId, action: "refresh" }, () => web.serve("/bare", "Now", "<p>There.</p>")]);
      await talk.ask(room, "Look again");
      await talk.ask(room, "And now?");
      expect(shown()).toContain("There.");
      expect(shown()).not.toContain("has no text");
      await talk.stop();
    });

    it("that is opened once more says whether the page has changed", async () => {
      const { talk, script } = await begin();
      const room = await talk.room();
      const url = web.serve("/news", "News", "<p>All is well.</p>");
      const open = async () => {
        script(["BrowseWeb", { url }]);
        await talk.ask(room, `Read ${url}`);
        return talk.calls.at(-1)?.texts.slice(-2).join("\n") ?? "";
      };
      expect(await open()).not.toContain("The page");
      expect(await open()).toContain("The page is as it was.");
      web.serve("/news", "News", "<p>All is lost.</p>");
      expect(await open()).toContain("The page has changed.");
      await talk.stop();
    });
  });
});
