import { beforeAll, describe, expect, it } from "vitest";
import type { AgentRow } from "../../src/database/agents.ts";
import { UserError } from "../../src/lib/errors.ts";
import type { RoomId } from "../../src/lib/ids.ts";
import { FileSystem } from "../../src/vfs/file-system.ts";
import type { Actor } from "../../src/vfs/place.ts";
import { actorOf, shares } from "../support/actor.ts";
import { onEachDatabase } from "../support/database.ts";
import { addAgent, newKey, newRoom, setMember } from "../support/rows.ts";

onEachDatabase((database) => {
  let agent: AgentRow;
  const room = newRoom();
  beforeAll(async () => {
    agent = await addAgent(database());
    await setMember(database(), room, agent.userId, "join");
    await setMember(database(), room, agent.owner, "join");
  });

  const open = (fields: Partial<Actor> = {}, key = newKey()): FileSystem => {
    return new FileSystem(shares(database()), actorOf(agent, room, fields), key);
  };
  const inRoom = (name: string, of: RoomId = room) => `rooms:/${of}/${name}`;

  describe("a file", () => {
    it("is written, read, appended to, and known with its versions", async () => {
      const files = open();
      const path = inRoom("notes/one.md");
      expect(await files.write(path, "one")).toEqual({ path, contentType: "text/markdown", version: 1, size: 3 });
      expect(await open().append(path, " two")).toMatchObject({ version: 2, size: 7 });
      expect(await files.read(path)).toMatchObject({ text: "one two" });
      expect(await files.stat(path)).toMatchObject({ version: 2, versions: [{ version: 1, size: 3 }] });
      expect(files.sources).toEqual([room]);
    });

    it("that is not there is said to be missing", async () => {
      await expect(open().read(inRoom("nothing"))).rejects.toThrow(UserError);
      await expect(open().stat(inRoom("nothing"))).rejects.toThrow("There is no file");
    });

    it("is appended to by many at once, and nothing is lost", async () => {
      const path = inRoom("log.txt");
      await Promise.all(["a", "b", "c", "d"].map((text) => open().append(path, text)));
      expect([...((await open().read(path)).text ?? "")].sort().join("")).toBe("abcd");
    });
  });
});
