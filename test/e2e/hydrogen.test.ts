import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import type { Locator, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { cacheDir } from "../support/cache-dir.ts";
import { all, textOf } from "../support/elements.ts";
import { browserMissing, type Hydrogen, openHydrogen } from "../support/hydrogen.ts";
import { toolName } from "../support/scripted-model.ts";
import { answer, callsOf, roomSeen } from "../support/sight.ts";
import { Stage } from "../support/stage.ts";
import type { TestUser } from "../support/user.ts";

const screenshots = join(cacheDir, "screenshots");

describe.skipIf(browserMissing)(`in Hydrogen (slow: a real browser; ${browserMissing ?? screenshots})`, () => {
  let stage: Stage;
  /** A second client of the same person. */
  let ann: TestUser;
  let hydrogen: Hydrogen;
  let page: Page;
  let room: string;
  beforeAll(async () => {
    await mkdir(screenshots, { recursive: true });
    stage = await Stage.set({
      database: "postgres",
      agents: { helper: {}, writer: { answer: "text", streaming: true } },
      permissions: { "@ann:clevernet.test": "operate" },
    });
    await stage.bridge.start();
    ann = await stage.user("ann");
    hydrogen = await openHydrogen(stage.homeserver);
    page = hydrogen.page;
    page.setDefaultTimeout(15_000);
  });
  afterAll(async () => {
    await hydrogen?.stop();
    await stage?.strike();
  });

  afterEach(async ({ task }) => {
    if (task.result?.state === "fail") await shoot(`failed: ${task.name}`);
  });

  const shoot = (name: string) => page.screenshot({ path: join(screenshots, `${name}.png`) });
  const message = (text: string): Locator => page.locator(".Timeline_message", { hasText: text }).last();
  const say = async (text: string) => {
    await page.locator(".MessageComposer textarea").fill(text);
    await page.locator(".MessageComposer textarea").press("Enter");
  };

  it("a person logs in", async () => {
    await page.locator("#username").fill("ann");
    await page.locator("#password").fill("password-ann");
    await page.getByRole("button", { name: "Log In" }).click();
    await page.locator(".LeftPanel").waitFor();
    await shoot("1-logged-in");
  });

  it("makes a room and invites an agent, which comes", async () => {
    await page.getByLabel("Create room").click();
    await page.getByText("Create Room", { exact: true }).click();
    await page.getByLabel("Room name").fill("Kitchen");
    await page.getByLabel("Enable end-to-end encryption").uncheck();
    await page.locator("button[type=submit]").click();
    await page.locator(".RoomList").getByText("Kitchen").click();
    await page.getByLabel("Room options").click();
    await page.getByText("Room details").click();
    await page.getByText("People").click();
    await page.getByText("Invite to this room").click();
    await page.getByPlaceholder("Enter user-id of user").fill(stage.agentId());
    await page.getByRole("button", { name: "Invite", exact: true }).click();
    await page.getByText("helper joined the room").waitFor();
    room = decodeURIComponent(/room\/([^/]+)/.exec(page.url())?.[1] ?? "");
    await shoot("2-invited");
  });

  it("asks, finds the agent typing while it thinks, and reads the answer with its markup", async () => {
    const thinking = Promise.withResolvers<void>();
    stage.model.on("what is for dinner", (request) => [
      { wait: thinking.promise },
      answer(request, "**Soup**, with\n\n- carrots\n- leek"),
    ]);
    await say("what is for dinner?");
    // Hydrogen itself does not show who types.
    await expect.poll(() => ann.typing(room)).toEqual([stage.agentId()]);
    await shoot("3-thinking");
    thinking.resolve();
    await message("carrots").waitFor();
    expect(await message("carrots").locator("strong").textContent()).toBe("Soup");
    expect(await message("carrots").locator("li").allTextContents()).toEqual(["carrots", "leek"]);
    await expect.poll(() => ann.typing(room)).toEqual([]);
    await shoot("4-answered");
  });

  it("reacts to the answer, which the homeserver knows", async () => {
    await message("carrots").hover();
    await message("carrots").locator(".Timeline_messageOptions").click();
    await page.locator(".quick-reactions").getByText("👍").click();
    await message("carrots").getByText("👍 1").waitFor();
    const { id } = await ann.waitForMessage(room, ({ body }) => body.includes("carrots"));
    const path = `v1/rooms/${encodeURIComponent(room)}/relations/${encodeURIComponent(id)}/m.annotation`;
    await expect.poll(async () => (await ann.api("GET", path)).chunk).toHaveLength(1);
    await shoot("5-reaction");
  });

  it("sees the agent's reaction below its own message", async () => {
    stage.model.on("thank you", (request) => {
      const asked = all(roomSeen(request, room), "message").findLast((seen) => textOf(seen) === "thank you");
      const react = { call: toolName(request, "React"), arguments: { eventId: asked?.attributes.eventId, key: "❤" } };
      return [react, answer(request, "you are welcome")];
    });
    await say("thank you");
    await message("you are welcome").waitFor();
    await message("thank you").getByText("❤ 1").waitFor();
    await shoot("6-agent-reacts");
  });

  it("sees what an agent answers in a thread as an answer to what it is about", async () => {
    stage.model.on("is there salt", (request) => answer(request, "a pinch"));
    const { id } = await ann.waitForMessage(room, ({ body }) => body.includes("carrots"));
    await ann.thread(room, id, "is there salt in it?");
    await message("a pinch").locator(".ReplyPreviewView").waitFor();
    await shoot("7-thread");
  });

  it("decides with a click what the agent asks, and sees on the card what became of it", async () => {
    stage.model.on("clear the shopping list", (request) =>
      callsOf(request).length > 0
        ? answer(request, "it is gone")
        : { call: toolName(request, "FS_Delete"), arguments: { path: `rooms:/${room}/list.md` } },
    );
    await say(`!write rooms:/${room}/list.md carrots`);
    await message("was written").waitFor();
    await say("clear the shopping list");
    const card = message("May decide");
    await card.getByText("✅ 1").waitFor();
    await card.getByText("❌ 1").waitFor();
    await shoot("8-approval");
    await card.getByText("✅ 1").click();
    await message("it is gone").waitFor();
    await message("and done").waitFor();
    await shoot("9-approved");
  });

  it("watches an answer grow, of which one message is left", async () => {
    await stage.directRoom(ann, "writer");
    await page.locator(".RoomList").getByText("writer").click();
    const pieces = [1, 2].map(() => Promise.withResolvers<void>());
    const waits = pieces.map(({ promise: wait }) => ({ wait }));
    stage.model.on("a story", ["Once **upon**", waits[0] ?? "", " a time", waits[1] ?? "", " it ended."]);
    await say("tell me a story");
    await message("Once upon").waitFor();
    await shoot("10-begins");
    pieces[0]?.resolve();
    await message("Once upon a time").waitFor();
    await shoot("11-grows");
    pieces[1]?.resolve();
    await message("Once upon a time it ended.").waitFor();
    await expect.poll(() => page.locator(".Timeline_message", { hasText: "Once upon" }).count()).toBe(1);
    await shoot("12-ended");
  });

  it("makes an encrypted room, asks, reads the answer, and is warned of nothing", async () => {
    await page.getByLabel("Create room").click();
    await page.getByText("Create Room", { exact: true }).click();
    await page.getByLabel("Room name").fill("Vault");
    expect(await page.getByLabel("Enable end-to-end encryption").isChecked()).toBe(true);
    await page.locator("button[type=submit]").click();
    await page.locator(".RoomList").getByText("Vault").click();
    await page.getByLabel("Room options").click();
    await page.getByText("Room details").click();
    await page.getByText("People").click();
    await page.getByText("Invite to this room").click();
    await page.getByPlaceholder("Enter user-id of user").fill(stage.agentId());
    await page.getByRole("button", { name: "Invite", exact: true }).click();
    await page.getByText("helper joined the room").waitFor();
    stage.model.on("a secret", (request) => answer(request, "**mum** is the word"));
    await say("tell me a secret");
    await message("is the word").waitFor();
    expect(await message("is the word").locator("strong").textContent()).toBe("mum");
    await shoot("13-encrypted");
    const vault = decodeURIComponent(/room\/([^/]+)/.exec(page.url())?.[1] ?? "");
    const rows = await stage.query<{ isEncrypted: boolean }>(
      `select cipher is not null as "isEncrypted" from events where room_id = '${vault}' and type = 'm.room.message'`,
    );
    expect(rows).toEqual([{ isEncrypted: true }, { isEncrypted: true }]);
    for (const warning of [".unverified", ".error"])
      expect(await page.locator(`.Timeline_message${warning}`).count()).toBe(0);
    expect(await page.getByText(/unable to decrypt|could not be decrypted|not verified/i).count()).toBe(0);
  });
});
