import { randomBytes } from "node:crypto";
import { afterAll, beforeAll, expect, it } from "vitest";
import { Workspace } from "../../../src/adapters/sandbox/workspace.ts";
import { type Conversation, secret } from "../../../src/base/lib/ids.ts";
import type { FileSystemParts } from "../../../src/domain/files/file-reader.ts";
import { FileSystem } from "../../../src/domain/files/file-system.ts";
import { move } from "../../../src/domain/files/move.ts";
import type { Actor } from "../../../src/domain/files/place.ts";
import { SandboxShare } from "../../../src/domain/files/sandbox-share.ts";
import { treeOf } from "../../../src/domain/files/tree.ts";
import type { AgentRow } from "../../../src/domain/tables/agents.ts";
import { Files } from "../../../src/domain/tables/files.ts";
import { actorOf, shares } from "../../support/actor.ts";
import { Computers } from "../../support/computers.ts";
import { onEachDatabase } from "../../support/database.ts";
import { addAgent, newKey, newRoom, setMember } from "../../support/rows.ts";
import { describeSandbox } from "../../support/sandbox.ts";

describeSandbox("sandbox: in the virtual file system", () => {
  onEachDatabase((database) => {
    let agent: AgentRow;
    let computers: Computers;
    let parts: FileSystemParts;
    let here: Conversation;
    let there: Conversation;
    const room = async (): Promise<Conversation> => {
      const roomId = newRoom();
      for (const one of [agent.userId, agent.owner]) await setMember(database(), roomId, one, "join");
      return { agent: agent.name, roomId };
    };
    beforeAll(async () => {
      agent = await addAgent(database());
      computers = new Computers(database(), { homeserver: secret(8) });
      const { sandboxes, table } = computers;
      parts = {
        ...shares(database()),
        sandboxes: (conversation) =>
          new SandboxShare(new Files(database()), {
            open: async () => new Workspace(await sandboxes.use(conversation)),
            sources: async () => (await table.sources(conversation)).filter((one) => one !== conversation.roomId),
            hold: (sources) => table.hold(conversation, sources),
          }),
      };
      [here, there] = [await room(), await room()];
    });
    afterAll(() => computers.remove());
    const files = (at = here, actor: Partial<Actor> = {}, key = newKey()) =>
      new FileSystem(parts, actorOf(agent, at.roomId, actor), key);
    const sh = (text: string, at = here) => computers.out(at, text);

    it("reads and writes what commands see, and marks it as nobody's word", async () => {
      expect(await files().write("sandbox:/src/app.ts", "let a = 1;\n")).toMatchObject({
        contentType: "text/plain",
        size: 11,
      });
      expect(await sh("cat src/app.ts; echo 'let b;' >> src/app.ts")).toBe("let a = 1;\n");
      const reader = files();
      expect((await reader.read("sandbox:/src/app.ts")).text).toBe("let a = 1;\nlet b;\n");
      expect(reader.taint).toEqual(["sandbox:/src/app.ts"]);
      expect(reader.sources).toEqual([here.roomId]);
      await files().edit("sandbox:/src/app.ts", (text) => `${text}let c;\n`);
      expect(await sh("tail -1 src/app.ts")).toBe("let c;\n");
      const bytes = randomBytes(100_000);
      await files().write("sandbox:/b.bin", bytes);
      expect((await files().read("sandbox:/b.bin")).binary).toEqual(bytes);
    });

    it("lists, finds, tells versions apart, and removes", async () => {
      await sh(
        "mkdir -p list/node_modules/x list/sub; touch list/a.md list/sub/b.md list/node_modules/x/c.md 'list/back\\slash' list/Makefile",
      );
      const listed = await files().list("sandbox:/list");
      expect(listed.map(({ path, contentType }) => `${path} ${contentType}`)).toEqual([
        "/list inode/directory",
        "/list/Makefile text/plain",
        "/list/a.md text/markdown",
        "/list/node_modules inode/directory",
        "/list/sub inode/directory",
        "/list/sub/b.md text/markdown",
      ]);
      expect((await files().list("sandbox:/**/*.md")).map(({ path }) => path)).toEqual([
        "/list/a.md",
        "/list/sub/b.md",
      ]);
      const { version } = await files().stat("sandbox:/list/a.md");
      await sh("echo more > list/a.md");
      await expect(files().write("sandbox:/list/a.md", "x", { expected: version })).rejects.toThrow("read it again");
      await expect(files().write("sandbox:/list/a.md", "x", { expected: 0 })).rejects.toThrow("is there already");
      await expect(files().remove("sandbox:/list")).rejects.toThrow("say recursive");
      const key = newKey();
      expect(await files(here, {}, key).remove("sandbox:/list", { isRecursive: true })).toContain("sandbox:/list");
      await sh("mkdir list");
      // Run again by one and the same operation, which has removed it already.
      await files(here, {}, key).remove("sandbox:/list", { isRecursive: true });
      expect(await sh("ls -d list")).toBe("list\n");
      await expect(files().read("sandbox:/none")).rejects.toThrow("There is no file sandbox:/none.");
      await expect(files().read("sandbox:/list")).rejects.toThrow("is a folder");
    });

    it("tells of what has names that no path can have, and counts what it removes", async () => {
      await sh("mkdir -p odd/sub; cd odd; touch -- plain $'new\\nline' ' lead' 'trail ' $'\\xff' sub/$'\\xfe'");
      const { files: listed, hidden } = await files().listAll("sandbox:/odd");
      expect(listed.map(({ path }) => path)).toEqual(["/odd", "/odd/plain", "/odd/sub"]);
      expect(hidden).toBe(5);
      expect(treeOf(listed, "/odd", 3, 100)).toBe(
        [
          "sub/",
          "  [and 1 more with names that cannot be shown]",
          "plain (text/plain, 0 bytes)",
          "[and 4 more with names that cannot be shown]",
        ].join("\n"),
      );
      await expect(files().remove("sandbox:/odd/sub")).rejects.toThrow("is a folder with 1 files: say recursive");
      const remover = files();
      await remover.remove("sandbox:/odd", { isRecursive: true });
      expect(await remover.removedFiles("sandbox:/odd")).toBe(6);
      expect(await sh("ls -d odd 2>&1 || true")).toContain("cannot access");
    });

    it("leaves a file out of a search that is too large for it, and reads the others", async () => {
      await sh("mkdir large; truncate -s 17M large/a; echo needle >large/b");
      const read: string[] = [];
      for await (const { path } of files().texts(await files().list("sandbox:/large"))) read.push(path);
      expect(read).toEqual(["/large/b"]);
      await sh("rm -r large");
    });

    it("writes once for one operation, however often that is run", async () => {
      const key = newKey();
      const first = await files(here, {}, key).write("sandbox:/once", "1", { expected: 0 });
      await sh("echo 2 > once");
      expect(await files(here, {}, key).write("sandbox:/once", "1", { expected: 0 })).toEqual(first);
      expect(await sh("cat once")).toBe("2\n");
    });

    it("moves whole folders as they are, and copies between it and the room", async () => {
      await sh(
        "mkdir -p m/node_modules; echo x > m/node_modules/x; echo '#!/bin/sh' > m/run; chmod +x m/run; ln -s run m/l",
      );
      await move(files(), "sandbox:/m", "sandbox:/moved/to");
      expect(await sh("ls -l moved/to | awk '{print $1, $NF}' | tail -n +2; cat moved/to/node_modules/x")).toBe(
        "lrwxrwxrwx run\ndrwxr-xr-x node_modules\n-rwxr-xr-x run\nx\n",
      );
      await files().copy("sandbox:/moved/to/run", `rooms:/${here.roomId}/run.sh`);
      const copy = await files().read(`rooms:/${here.roomId}/run.sh`);
      expect([copy.text, copy.isTainted]).toEqual(["#!/bin/sh\n", true]);
      await files().copy(`rooms:/${here.roomId}/run.sh`, "sandbox:/back.sh");
      expect(await sh("cat back.sh")).toBe("#!/bin/sh\n");
    });

    it("is another one in every room, and the conversation's own wherever its files are sent", async () => {
      await sh("echo here > which");
      await sh("echo there > which", there);
      expect((await files(there).read("sandbox:/which")).text).toBe("there\n");
      const sent = files(there, { sandboxRoom: here.roomId });
      expect((await sent.read("sandbox:/which")).text).toBe("here\n");
      expect(sent.sources).toEqual([here.roomId]);
    });

    it("is closed to those who may not read the room", async () => {
      const stranger = { requesters: ["@stranger:test" as never] };
      await expect(files(here, stranger).read("sandbox:/which")).rejects.toThrow("may not read it");
      await expect(files(here, stranger).write("sandbox:/which", "x")).rejects.toThrow("may not write there");
      await expect(files(here, stranger).list("sandbox:/")).rejects.toThrow("is closed here");
    });

    it("has the walls of all that it may hold", async () => {
      const at = await room();
      await files(at, { sources: [there.roomId] }).write("sandbox:/from-there", "x");
      const reader = files(at);
      await reader.read("sandbox:/from-there");
      expect([...reader.sources].sort()).toEqual([at.roomId, there.roomId].sort());
      await computers.run(at, "true", { sources: [here.roomId] });
      const later = files(at);
      await later.read("sandbox:/from-there");
      expect([...later.sources].sort()).toEqual([at.roomId, here.roomId, there.roomId].sort());
    });

    it("says so where there are no sandboxes", async () => {
      const none = new FileSystem(shares(database()), actorOf(agent, here.roomId), newKey());
      await expect(none.read("sandbox:/x")).rejects.toThrow("There are no files in sandbox: here.");
    });
  });
});
