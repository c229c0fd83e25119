import { beforeAll, describe, expect, it } from "vitest";
import { UserError } from "../../../src/base/lib/errors.ts";
import { HOME, type RoomId, type UserId } from "../../../src/base/lib/ids.ts";
import { FileSystem } from "../../../src/domain/files/file-system.ts";
import { formatPath, parsePath } from "../../../src/domain/files/path.ts";
import type { Actor } from "../../../src/domain/files/place.ts";
import type { AgentRow } from "../../../src/domain/tables/agents.ts";
import { Files } from "../../../src/domain/tables/files.ts";
import { Windows } from "../../../src/domain/tables/windows.ts";
import { actorOf, shares } from "../../support/actor.ts";
import { onEachDatabase } from "../../support/database.ts";
import { addAgent, newKey, newRoom, newUser, setMember, settleEvent } from "../../support/rows.ts";

onEachDatabase((database) => {
  let agent: AgentRow;
  let other: AgentRow;
  const [owner, ann, ben] = [newUser(), newUser(), newUser()];
  /** The agent alone with its owner, with Ann, with Ann and Ben; a room of the other agent with Ann; without anybody. */
  const [withOwner, withAnn, withBoth, foreign, empty] = [newRoom(), newRoom(), newRoom(), newRoom(), newRoom()];

  beforeAll(async () => {
    agent = await addAgent(database(), owner);
    other = await addAgent(database(), ann);
    const members: [RoomId, UserId[]][] = [
      [withOwner, [agent.userId, owner]],
      [withAnn, [agent.userId, ann]],
      [withBoth, [agent.userId, owner, ann, ben]],
      [foreign, [other.userId, ann]],
      [empty, [agent.userId]],
    ];
    for (const [room, people] of members)
      for (const person of people) await setMember(database(), room, person, "join");
    const files = new Files(database());
    for (const path of Object.values(paths())) {
      if (!path.startsWith("system:"))
        await files.write({ ...parsePath(path), contentType: "text/plain", text: "secret", owner });
    }
  });

  /** One file of each kind. */
  const paths = () => ({
    "agent.json": `agents:/${agent.name}/agent.json`,
    persona: `agents:/${agent.name}/persona.md`,
    directive: `agents:/${agent.name}/directives/one.md`,
    guide: `agents:/${agent.name}/guides/one.md`,
    scratchpad: `agents:/${agent.name}/scratchpad.txt`,
    memory: `agents:/${agent.name}/memory/NOW.md`,
    "other's agent.json": `agents:/${other.name}/agent.json`,
    "other's memory": `agents:/${other.name}/memory/NOW.md`,
    "other's scratchpad": `agents:/${other.name}/scratchpad.txt`,
    "shared by agents": "agents:/docs-of-all/roadmap.md",
    "room with owner": `rooms:/${withOwner}/a.txt`,
    "room with Ann": `rooms:/${withAnn}/a.txt`,
    "room with both": `rooms:/${withBoth}/a.txt`,
    "foreign room": `rooms:/${foreign}/a.txt`,
    "Ann's": `users:/${ann}/a.txt`,
    "Ben's": `users:/${ben}/a.txt`,
    "owner's": `users:/${owner}/a.txt`,
    "no room": "rooms:/nonsense/a.txt",
    "no user": "users:/ann/a.txt",
    guides: "system:/guides/clevernet.md",
  });
  type Kind = keyof ReturnType<typeof paths>;
  const open = (room: RoomId, fields: Partial<Actor> = {}): FileSystem =>
    new FileSystem(shares(database()), actorOf(agent, room, fields), newKey());
  const allowed = async (attempt: Promise<unknown>): Promise<boolean> => {
    try {
      await attempt;
      return true;
    } catch (error) {
      expect(error).toBeInstanceOf(UserError);
      return false;
    }
  };
  /** Which kinds can be read, and which written. */
  const rightsOf = async (room: RoomId, fields: Partial<Actor>) => {
    const may = async (act: (files: FileSystem, path: string) => Promise<unknown>) => {
      const kinds = Object.entries(paths()) as [Kind, string][];
      const answers = await Promise.all(kinds.map(([, path]) => allowed(act(open(room, fields), path))));
      return kinds.flatMap(([kind], index) => (answers[index] ? kind : []));
    };
    return {
      read: await may((files, path) => files.read(path)),
      // Nothing changes: another version is there. What may be written is refused for that reason alone.
      written: await may(async (files, path) => {
        await files.write(path, "{}", { expected: 999 }).catch((error: Error) => {
          if (!/by now|not there any more/.test(error.message)) throw error;
        });
      }),
    };
  };

  /** Files that everybody who may use an agent reads everywhere; the model reads the guides besides. */
  const definitions: Kind[] = ["agent.json", "persona", "directive", "guide", "other's agent.json", "shared by agents"];
  const everywhere: Kind[] = [...definitions, "guides"];
  const own: Kind[] = ["agent.json", "persona", "directive", "guide"];
  type Cell = [who: string, room: RoomId, fields: Partial<Actor>, read: Kind[], written: Kind[]];
  const cells: Cell[] = [
    [
      "the model at home, for the owner",
      HOME,
      { sources: [HOME] },
      [...everywhere, "scratchpad", "memory", "room with owner", "room with both", "owner's"],
      ["scratchpad", "memory", "room with owner", "owner's"],
    ],
    [
      "the model alone with the owner",
      withOwner,
      {},
      [...everywhere, "scratchpad", "memory", "room with owner", "room with both", "owner's"],
      ["scratchpad", "memory", "room with owner", "owner's"],
    ],
    [
      "the model in company, for the owner",
      withBoth,
      {},
      [...everywhere, "room with both"],
      ["scratchpad", "memory", "room with owner", "room with both", "owner's"],
    ],
    [
      "the model alone with Ann",
      withAnn,
      { requesters: [ann] },
      [...everywhere, "room with Ann", "room with both", "Ann's"],
      ["room with Ann", "Ann's"],
    ],
    [
      "the model alone with Ann, when it has seen what only the owner may read",
      withAnn,
      { requesters: [ann], sources: [withOwner] },
      [...everywhere, "room with Ann", "room with both", "Ann's"],
      [],
    ],
    [
      "the model alone with Ann, who may only chat",
      withAnn,
      { requesters: [ann], uses: false },
      ["guides", "room with Ann", "room with both", "Ann's"],
      ["room with Ann", "Ann's"],
    ],
    [
      "the model alone with Ann, for the owner, who is not there",
      withAnn,
      {},
      [...everywhere, "room with both"],
      ["scratchpad"],
    ],
    [
      "the model in company, for Ann",
      withBoth,
      { requesters: [ann] },
      [...everywhere, "room with both"],
      ["room with Ann", "room with both", "Ann's"],
    ],
    [
      "the model in company, for Ann and the owner",
      withBoth,
      { requesters: [ann, owner] },
      [...everywhere, "room with both"],
      ["room with both"],
    ],
    [
      "the model in company, for an admin",
      withBoth,
      { requesters: [ben], isAdmin: true },
      [...everywhere, "room with both"],
      ["room with both", "Ben's"],
    ],
    ["the model where nobody is, for the owner", empty, {}, everywhere, ["scratchpad"]],
    ["the model for nobody", withBoth, { requesters: [] }, everywhere, []],
    [
      "the owner in company",
      withBoth,
      { by: "person" },
      [...everywhere, "room with both"],
      [...own, "scratchpad", "memory", "room with owner", "room with both", "owner's"],
    ],
    [
      "Ann in company",
      withBoth,
      { by: "person", requesters: [ann] },
      [...everywhere, "room with both"],
      ["other's agent.json", "room with Ann", "room with both", "Ann's"],
    ],
    [
      "Ann in company, who may only chat",
      withBoth,
      { by: "person", requesters: [ann], uses: false },
      ["guides", "room with both"],
      ["other's agent.json", "room with Ann", "room with both", "Ann's"],
    ],
    [
      "Ann alone with the agent",
      withAnn,
      { by: "person", requesters: [ann] },
      [...everywhere, "room with Ann", "room with both", "Ann's"],
      ["other's agent.json", "room with Ann", "Ann's"],
    ],
    [
      "an admin in company",
      withBoth,
      { by: "person", requesters: [ben], isAdmin: true },
      [...everywhere, "room with both"],
      [...own, "other's agent.json", "shared by agents", "room with both", "Ben's", "guides"],
    ],
  ];

  describe.each(cells)("%s", (_, room, fields, read, written) => {
    it("reads and writes what the table says, and nothing else", async () => {
      const rights = await rightsOf(room, fields);
      expect(new Set(rights.read)).toEqual(new Set(read));
      expect(new Set(rights.written)).toEqual(new Set(written));
    });

    it("lists what it may read", async () => {
      const listed = await Promise.all(
        ["agents", "rooms", "users", "system"].map((share) => open(room, fields).list(`${share}:/**`)),
      );
      const kinds = Object.entries(paths()) as [Kind, string][];
      const found = new Set(listed.flat().map(formatPath));
      expect(new Set(kinds.filter(([, path]) => found.has(path)).map(([kind]) => kind))).toEqual(new Set(read));
    });
  });

  it("settings that name another agent's file for a scratchpad or a persona open nothing", async () => {
    const path = `agents:/${other.name}/memory/NOW.md`;
    const actor = actorOf(agent, HOME);
    for (const named of [{ scratchPadFile: path }, { personaFile: path }]) {
      const files = open(HOME, { agent: { ...actor.agent, ...named } });
      await expect(files.read(path)).rejects.toThrow("closed here");
      await expect(files.write(path, "mine")).rejects.toThrow("closed here");
      const { files: shown } = await new Windows(database()).desk(
        { agent: agent.name, userId: agent.userId, owner, here: HOME },
        { files: [parsePath(path), parsePath(`agents:/${agent.name}/persona.md`)] },
      );
      expect(shown.map(formatPath)).toEqual([`agents:/${agent.name}/persona.md`]);
    }
  });

  describe("in a room that anybody may join", () => {
    const open_ = newRoom();
    beforeAll(async () => {
      for (const person of [agent.userId, owner]) await setMember(database(), open_, person, "join");
      const state = { type: "m.room.join_rules", content: { join_rule: "public" }, sender: owner };
      await settleEvent(database(), { roomId: open_ }, { state });
    });

    it.each(["model", "person"] as const)("nothing that stands elsewhere is read or listed: by the %s", async (by) => {
      const { read } = await rightsOf(open_, { by });
      expect(read).toEqual([...definitions, "guides"].filter((kind) => read.includes(kind as Kind)));
      expect(read).toHaveLength(7);
      for (const pattern of ["rooms:/**", "users:/**", `agents:/${agent.name}/memory/**`])
        expect(await open(open_, { by }).list(pattern)).toEqual([]);
    });

    it("its own files are as ever", async () => {
      await open(open_).write(`rooms:/${open_}/b.txt`, "ours");
      expect((await open(open_).read(`rooms:/${open_}/b.txt`)).text).toBe("ours");
      await expect(open(withOwner).write(`rooms:/${open_}/c.txt`, "theirs")).rejects.toThrow("closed here");
    });
  });

  describe("a scratchpad among the files of all agents", () => {
    const path = "agents:/pad-of-one.txt";
    beforeAll(async () => {
      const settings = JSON.stringify({ scratchPadFile: path });
      const one = { share: "agents", contentType: "application/json", owner };
      await new Files(database()).write({ ...one, path: `/${agent.name}/agent.json`, text: settings });
      await new Files(database()).write({
        ...one,
        path: parsePath(path).path,
        contentType: "text/plain",
        text: "secret",
      });
    });
    const mine = () => ({ agent: { ...actorOf(agent, HOME).agent, scratchPadFile: path } });

    it("is read where the agent's home is", async () => {
      expect((await open(withOwner, mine()).read(path)).text).toBe("secret");
      for (const [room, requesters] of [
        [withBoth, [owner]],
        [withAnn, [ann]],
        [withOwner, [ann]],
      ] as const)
        await expect(open(room, { ...mine(), requesters }).read(path)).rejects.toThrow("closed here");
    });

    it("is no file of all agents any more: nobody reads, finds, or lists it through another agent", async () => {
      for (const by of ["model", "person"] as const) {
        const files = new FileSystem(
          shares(database()),
          actorOf(other, foreign, { by, requesters: [ann], isAdmin: true }),
          newKey(),
        );
        await expect(files.read(path)).rejects.toThrow("closed here");
        expect((await files.list("agents:/**")).map(formatPath)).not.toContain(path);
      }
    });
  });

  it("a right that is taken away is gone at the next access", async () => {
    const [guest, room] = [newUser(), newRoom()];
    await setMember(database(), room, agent.userId, "join");
    await setMember(database(), room, guest, "join");
    const files = open(room, { requesters: [guest] });
    const path = `rooms:/${room}/a.txt`;
    await files.write(path, "one");
    await files.read(path);
    await setMember(database(), room, guest, "leave");
    await expect(files.read(path)).rejects.toThrow("closed here");
    await expect(files.write(path, "two")).rejects.toThrow("closed here");
  });

  it("a newcomer closes what they may not read", async () => {
    const room = newRoom();
    await setMember(database(), room, agent.userId, "join");
    await setMember(database(), room, owner, "join");
    const files = open(room);
    const path = `rooms:/${withOwner}/a.txt`;
    await files.read(path);
    await setMember(database(), room, newUser(), "join");
    await expect(files.read(path)).rejects.toThrow("not everybody here may read it");
  });

  it("what was read in an operation is not written where others may not read it", async () => {
    const files = open(withOwner, { sources: [] });
    await files.read(`agents:/${agent.name}/memory/NOW.md`);
    expect(files.sources).toEqual([HOME]);
    await expect(files.copy(`rooms:/${withOwner}/a.txt`, `rooms:/${withBoth}/b.txt`)).rejects.toThrow("closed here");
  });

  describe("a file that came with an event", () => {
    const [early, late] = [newUser(), newUser()];
    const prepared = async (visibility: string) => {
      const room = newRoom();
      const content = { history_visibility: visibility };
      const state = { type: "m.room.history_visibility", content, sender: early };
      await settleEvent(database(), { roomId: room }, { state });
      for (const person of [agent.userId, early]) await setMember(database(), room, person, "join", 0);
      const { eventId, position } = await settleEvent(database(), { roomId: room });
      const file = { share: "rooms", path: `/${room}/a.txt`, contentType: "text/plain", text: "early", owner: early };
      await new Files(database()).write({ ...file, eventId });
      await new Files(database()).write({ ...file, path: `/${room}/own.txt`, text: "early too" });
      const seat = { agent: agent.name, userId: agent.userId, owner, here: room };
      const window = { srcType: "file", src: formatPath({ share: "rooms", path: file.path }), arguments: "" } as const;
      const rest = {
        contentType: "text/plain",
        content: null,
        sources: [room],
        taint: [],
        height: 20,
        turnsLeft: 2,
        key: newKey(),
      };
      await new Windows(database()).open(seat, { ...window, ...rest });
      const seenBy = async (requester: UserId) => {
        const files = open(room, { requesters: [requester] });
        const { windows } = await new Windows(database()).desk(seat);
        return {
          reads: await allowed(files.read(window.src)),
          lists: (await files.list(`rooms:/${room}/*`)).map(({ path }) => path.split("/").at(-1)),
          isShown: windows[0]?.isOpen,
        };
      };
      const joins = () => setMember(database(), room, late, "join", position + 1);
      return { seenBy, joins, room };
    };

    it.each(["joined", "invited"])("is closed as its event is to whoever came later: %s", async (visibility) => {
      const { seenBy, joins } = await prepared(visibility);
      expect(await seenBy(early)).toEqual({ reads: true, lists: ["a.txt", "own.txt"], isShown: true });
      await joins();
      for (const requester of [early, late])
        expect(await seenBy(requester)).toEqual({ reads: false, lists: [], isShown: false });
    });

    it("and so is whatever was written before they came, until it is written anew", async () => {
      const { joins, room } = await prepared("joined");
      const own = `rooms:/${room}/own.txt`;
      await joins();
      const files = (requester: UserId) => open(room, { requesters: [requester] });
      const reads = () => allowed(files(late).read(own));
      expect(await reads()).toBe(false);
      await expect(files(late).edit(own, (old) => `${old}more`)).rejects.toThrow("closed here");
      await expect(files(late).write(own, "mine")).rejects.toThrow("closed here");
      await expect(files(late).restore(own)).rejects.toThrow("closed here");
      await files(early).edit(own, (old) => `${old}, and more`);
      expect(await reads()).toBe(false);
      await files(early).write(own, "for all");
      expect(await reads()).toBe(true);
      await files(early).restore(own);
      expect(await reads()).toBe(false);
    });

    it("cannot be carried to those who came later from where they are not", async () => {
      const { joins, room } = await prepared("joined");
      const private_ = newRoom();
      for (const person of [agent.userId, early]) await setMember(database(), private_, person, "join");
      await joins();
      const files = open(private_, { requesters: [early] });
      const text = (await files.read(`rooms:/${room}/own.txt`)).text ?? "";
      expect(text).toBe("early too");
      await expect(files.write(`rooms:/${room}/again.txt`, text)).rejects.toThrow("may not read all that was shown");
      await expect(files.copy(`rooms:/${room}/own.txt`, `rooms:/${room}/b.txt`)).rejects.toThrow("closed here");
    });

    it("is open to newcomers where the history is", async () => {
      const { seenBy, joins } = await prepared("shared");
      await joins();
      expect(await seenBy(late)).toEqual({ reads: true, lists: ["a.txt", "own.txt"], isShown: true });
    });
  });
});
