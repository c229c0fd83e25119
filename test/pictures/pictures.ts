import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Locator, Page } from "playwright-core";
import sharp from "sharp";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { browserMissing, type Hydrogen, openHydrogen } from "../support/hydrogen.ts";
import { toolName } from "../support/scripted-model.ts";
import { answer, callsOf } from "../support/sight.ts";
import { Stage } from "../support/stage.ts";
import type { TestUser } from "../support/user.ts";

const folder = join(import.meta.dirname, "../../docs/pictures");
const bytesMost = 150_000;

/** Members of a page's element that are used here. */
interface Box {
  readonly clientHeight: number;
  readonly parentElement: Box;
  readonly previousElementSibling: Box | null;
  readonly style: { display: string };
}

/** Runs in the browser: hides what stands above an item of the timeline. Returns the height that is then empty. */
const hideAbove = (item: unknown): number => {
  const { parentElement: list, previousElementSibling } = item as Box;
  for (let other = previousElementSibling; other; other = other.previousElementSibling) other.style.display = "none";
  return list.parentElement.clientHeight - list.clientHeight;
};

/** Makes the pictures of the documents anew: each is a conversation in a real client, with a scripted model. */
describe.skipIf(browserMissing)(`pictures of the documents (${browserMissing ?? folder})`, () => {
  let stage: Stage;
  let ann: TestUser;
  let ben: TestUser;
  let hydrogen: Hydrogen;
  let page: Page;
  let kitchen: string;

  beforeAll(async () => {
    stage = await Stage.set({
      database: "embedded",
      agents: { helper: { displayName: "Helper", owner: "@ann:clevernet.test", timeZone: "Europe/Berlin" } },
      permissions: { "@ann:clevernet.test": "admin", "@ben:clevernet.test": "operate" },
    });
    stage.model
      .on("what can we cook", (request) =>
        answer(
          request,
          "**Leek soup**, with what is on your list:\n\n- 3 leeks\n- 2 carrots\n- half a litre of stock\n\nIt takes 25 minutes.",
        ),
      )
      .on("clear our shopping list", (request) => {
        const { length } = callsOf(request);
        const reasoning = {
          reasoning: "Ann wants the list cleared. It is list.md in this room; to delete it I have to ask.",
        };
        if (length === 0) return [reasoning, { call: toolName(request, "FS_Delete"), arguments: { path: "list.md" } }];
        return answer(request, "The list is empty now. I start a new one when you need something.");
      })
      .on("empty the archive", (request) => {
        if (callsOf(request).length > 0) return answer(request, "Then I leave it as it is.");
        return { call: toolName(request, "FS_Delete"), arguments: { path: "recipes", recursive: true } };
      });
    await stage.bridge.start();
    [ann, ben] = await Promise.all([stage.user("ann"), stage.user("ben")]);
    for (const user of [ann, ben]) {
      const name = user === ann ? "Ann" : "Ben";
      await user.api("PUT", `v3/profile/${encodeURIComponent(user.id)}/displayname`, { body: { displayname: name } });
    }
    kitchen = await named("Kitchen", [ben], ["helper"]);
    hydrogen = await openHydrogen(stage.homeserver);
    page = hydrogen.page;
    page.setDefaultTimeout(20_000);
    await page.locator("#username").fill("ann");
    await page.locator("#password").fill("password-ann");
    await page.getByRole("button", { name: "Log In" }).click();
    await page.locator(".LeftPanel").waitFor();
  });
  afterAll(async () => {
    await hydrogen?.stop();
    await stage?.strike();
  });

  const named = async (name: string, others: readonly TestUser[], agents: readonly string[]): Promise<string> => {
    const room = await stage.room(ann, others, agents);
    await ann.api("PUT", `v3/rooms/${encodeURIComponent(room)}/state/m.room.name/`, { body: { name } });
    return room;
  };
  const message = (text: string): Locator => page.locator(".Timeline_message", { hasText: text }).last();
  const open = async (name: string): Promise<void> => {
    await page.setViewportSize({ width: 1200, height: 900 });
    await page.locator(".RoomList").getByText(name, { exact: true }).click();
    await page.locator(".RoomView").waitFor();
  };
  /** Takes the picture of the room that is open: its name, and what was said from the last message with `text` on. */
  const shoot = async (name: string, text: string): Promise<void> => {
    const width = 760;
    await page.setViewportSize({ width, height: 2_400 });
    await page.mouse.move(0, 0);
    await expect.poll(() => page.locator(".LeftPanel").isVisible()).toBe(false);
    await page.addStyleTag({ content: ".DateHeader, .Timeline_jumpDown { display: none !important }" });
    const first = page.locator(".Timeline_scroller > ul > li", { hasText: text }).last();
    const above = await first.evaluate(hideAbove);
    await page.setViewportSize({ width, height: Math.ceil(2_400 - above) });
    const png = await sharp(await page.screenshot())
      .png({ palette: true, effort: 10 })
      .toBuffer();
    expect(png.length).toBeLessThan(bytesMost);
    await writeFile(join(folder, `${name}.png`), png);
  };
  const said = async (text: string): Promise<void> => {
    await message(text).waitFor();
  };

  it("files: people write and read files of the room", async () => {
    await open("Kitchen");
    for (const [line, told] of [
      ["!write list.md 3 leeks\n2 carrots\nhalf a litre of stock", "was written"],
      ["!mkdir recipes", "is there"],
      [
        "!write recipes/soup.md # Leek soup\nFry the leeks, add the stock, wait 20 minutes.",
        "recipes/soup.md was written",
      ],
      ["!ls", "soup.md (text"],
      ["!cat list.md", "2 carrots"],
    ] as const) {
      await ann.say(kitchen, line);
      await ann.waitForMessage(kitchen, ({ body, sender }) => sender !== ann.id && body.includes(told));
      await said(told);
    }
    await shoot("files", "!write list.md");
  });

  it("answer: in company an agent answers who mentions it", async () => {
    await open("Kitchen");
    await ben.say(kitchen, "I am home at seven.");
    await ben.mention(kitchen, stage.agentId(), "Helper: what can we cook until then?");
    await said("It takes 25 minutes");
    const reply = await ben.waitForMessage(kitchen, ({ body }) => body.includes("25 minutes"));
    await ben.react(kitchen, reply.id, "👍");
    await message("It takes 25 minutes").getByText("👍 1").waitFor();
    await shoot("answer", "I am home");
    const invited = () => ann.client.getRooms().find(({ name }) => name === "Thoughts of Helper")?.roomId;
    await expect.poll(invited).toBeDefined();
    await ann.join(String(invited()));
  });

  it("card: what an agent may not do by itself it asks for", async () => {
    await open("Kitchen");
    await ann.mention(kitchen, stage.agentId(), "Helper: please clear our shopping list");
    await message("May decide").getByText("✅ 1").waitFor();
    await message("May decide").getByText("❌ 1").waitFor();
    await shoot("card", "please clear");
  });

  it("thoughts: what an agent thinks and calls is read in a room of its own", async () => {
    await open("Thoughts of Helper");
    await said("Ann wants the list cleared");
    await said("waits until");
    await shoot("thoughts", "Ann wants");
  });

  it("decided: the card says what became of it", async () => {
    await open("Kitchen");
    await message("May decide").getByText("✅ 1").click();
    await said("and done");
    await said("The list is empty now");
    await ann.mention(kitchen, stage.agentId(), "Helper: and empty the archive of recipes");
    await message("May decide").getByText("❌ 1").waitFor();
    const { id } = await ann.waitForMessage(
      kitchen,
      ({ body, content }) => "org.clevernet.operation" in content && body.includes("recipes"),
    );
    await ann.reply(kitchen, id, "Ben still needs them");
    await said("Denied by");
    await said("Then I leave it as it is");
    await shoot("decided", "please clear");
  });

  it("control: admins see what all agents do", async () => {
    await ann.createDirectRoom("@clevernet:clevernet.test");
    const invited = () => ann.client.getRooms().find(({ name }) => name === "Clevernet: control room")?.roomId;
    await expect.poll(invited).toBeDefined();
    const control = String(invited());
    await ann.join(control);
    await open("Clevernet: control room");
    await ann.say(control, "!status");
    await said("spent today");
    await ann.say(control, "!operations");
    await said("Make the folder");
    await shoot("control", "!status");
  });
});
