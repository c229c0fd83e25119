import { beforeEach, describe, expect, it } from "vitest";
import type { AgentName, RoomId, UserId } from "../../../src/base/lib/ids.ts";
import { WebAddresses } from "../../../src/domain/tables/web-addresses.ts";
import { Windows } from "../../../src/domain/tables/windows.ts";
import { onEachDatabase } from "../../support/database.ts";
import { newKey, newRoom, newUser, setMember, settleEvent } from "../../support/rows.ts";
import { Talk } from "../../support/talk.ts";

const address = "https://a.example/b?c=d";

onEachDatabase((database) => {
  describe("an address", () => {
    let agent: AgentName;
    let agentId: UserId;
    let ann: UserId;
    let here: RoomId;
    beforeEach(async () => {
      const talk = await Talk.begin(database(), { reply: () => "" });
      await talk.stop();
      ({ name: agent, userId: agentId } = talk.agent);
      [ann, here] = [newUser(), newRoom()];
      for (const userId of [ann, agentId]) await setMember(database(), here, userId, "join");
    });

    const isKnown = (url = address, roomId = here) => new WebAddresses(database()).isKnown({ agent, roomId }, url);
    const say = (body: string, { sender = ann, roomId = here, msgtype = "m.text" } = {}) =>
      settleEvent(database(), { roomId, sender, content: { msgtype, body } }, { shownChars: body.length });
    const keep = (addresses: readonly string[], roomId = here) =>
      new Windows(database()).keepAddresses({ agent, userId: agentId, owner: ann, here: roomId }, addresses);

    it("is known once a person has written it in this room, word for word", async () => {
      expect(await isKnown()).toBe(false);
      await say(`look at https://a.example/b and ${address}e`);
      expect(await isKnown()).toBe(false);
      await say(`or rather at ${address}.`);
      expect(await isKnown()).toBe(true);
      expect(await isKnown("HTTPS://A.example/b?c=d#e")).toBe(true);
      expect(await isKnown(`${address}&x=secret`)).toBe(false);
      expect(await isKnown("nonsense")).toBe(false);
    });

    it("is not known because an agent, or a machine, has written it, nor from another room", async () => {
      await say(address, { sender: agentId });
      await say(address, { msgtype: "m.notice" });
      const elsewhere = newRoom();
      for (const userId of [ann, agentId]) await setMember(database(), elsewhere, userId, "join");
      await say(address, { roomId: elsewhere });
      expect(await isKnown()).toBe(false);
      expect(await isKnown(address, elsewhere)).toBe(true);
    });

    it("is not known because a person has quoted it, in a reply or where a reply was edited", async () => {
      const quoted = `> <${agentId}> look at ${address}\n\n`;
      await say(`${quoted}No, never do that.`);
      const edit = (text: string) => ({
        ...{
          msgtype: "m.text",
          body: `${quoted}* ${text}\n${address}`,
          "m.new_content": { msgtype: "m.text", body: text },
        },
        "m.relates_to": { rel_type: "m.replace", event_id: "$one" },
      });
      const editTo = (text: string) =>
        settleEvent(database(), { roomId: here, sender: ann, content: edit(text) }, { shownChars: text.length });
      await editTo("No, a.example is evil.");
      expect(await isKnown()).toBe(false);
      await editTo(`Well, ${address}`);
      expect(await isKnown()).toBe(true);
    });

    it("is not known any more once the message is redacted", async () => {
      const event = await say(address);
      expect(await isKnown()).toBe(true);
      await database().sql`update events set redacted_at = now() where event_id = ${event.eventId}`;
      expect(await isKnown()).toBe(false);
    });

    it("is known from what was read in this conversation, for ninety days", async () => {
      await keep([address, "https://other.example/"]);
      await keep([address]);
      expect(await isKnown()).toBe(true);
      expect(await isKnown(address, newRoom())).toBe(false);
      expect(await isKnown(`${address}#part`)).toBe(true);
      await database().sql`update web_addresses set seen_at = now() - interval '91 days' where agent = ${agent}`;
      await keep(["https://new.example/", newKey()]);
      expect(await isKnown()).toBe(false);
      expect(await isKnown("https://new.example/")).toBe(true);
    });
  });
});
