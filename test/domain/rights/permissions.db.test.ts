import { beforeEach, describe, expect, it } from "vitest";
import type { Notifier } from "../../../src/adapters/database/notify.ts";
import { nobodyElse } from "../../../src/adapters/database/notify.ts";
import type { RoomId, UserId } from "../../../src/base/lib/ids.ts";
import { type Level, levels, type Permissions } from "../../../src/domain/rights/permissions.ts";
import { differencesOf, Rights } from "../../../src/domain/rights/rights.ts";
import { Agents } from "../../../src/domain/tables/agents.ts";
import { Audit } from "../../../src/domain/tables/audit.ts";
import { PermissionTable } from "../../../src/domain/tables/permissions.ts";
import { Rooms } from "../../../src/domain/tables/rooms.ts";
import type { TakenWake } from "../../../src/domain/tables/turns.ts";
import { requesters } from "../../../src/engine/turn/cause.ts";
import { onEachDatabase } from "../../support/database.ts";
import { eventually } from "../../support/poll.ts";
import { addAgent, newKey, newRoom, setMember } from "../../support/rows.ts";

const [ann, ben] = ["@ann:a.org", "@ben:a.org"] as UserId[] as [UserId, UserId];

onEachDatabase((database) => {
  let rights: Rights;
  const newRights = (notifier: Notifier = nobodyElse) =>
    new Rights(new PermissionTable(database()), new Rooms(database()), notifier);
  beforeEach(async () => {
    await database().sql`delete from permissions`;
    rights = newRights();
  });
  const by = (actor = ann) => ({ key: newKey(), actor });
  const inForce = async () =>
    Object.fromEntries((await rights.rows()).map(({ actor, level, setBy }) => [actor, [level, setBy]]));

  describe("the configuration's permissions", () => {
    it("let nobody do anything until they are read, and when there are none", async () => {
      expect(await rights.of(ann)).toBe("none");
      await rights.configure({});
      expect(await rights.of(ann)).toBe("none");
      expect(await rights.leastOf([ann])).toBe("none");
      expect(rights.admins).toEqual([]);
    });

    it("change with the configuration, and go with it", async () => {
      await rights.configure({ [ann]: "admin", "a.org": "chat" });
      await rights.configure({ [ann]: "admin", "a.org": "use", "b.org": "chat" });
      expect(await inForce()).toEqual({ [ann]: ["admin", null], "a.org": ["use", null], "b.org": ["chat", null] });
      await rights.configure({ "a.org": "use" });
      expect(await inForce()).toEqual({ "a.org": ["use", null] });
      expect(await rights.of(ann)).toBe("use");
    });

    it("do not touch what was set by hand, and the difference is named", async () => {
      const configured: Permissions = { [ann]: "admin", [ben]: "chat", "a.org": "chat" };
      await rights.configure(configured);
      await rights.set(ben, "operate", by());
      await rights.set("a.org", null, by());
      await rights.set("c.org", "use", by());
      await rights.configure(configured);
      expect(await inForce()).toEqual({
        [ann]: ["admin", null],
        [ben]: ["operate", ann],
        "a.org": [null, ann],
        "c.org": ["use", ann],
      });
      expect(differencesOf(await rights.rows(), configured)).toEqual([
        `permission of ${ben}: operate (set by ${ann}), in the configuration: chat`,
        `permission of a.org: taken away (set by ${ann}), in the configuration: chat`,
        `permission of c.org: use (set by ${ann}), in the configuration: none`,
      ]);
    });

    it("rule again where the configuration has become what was set by hand", async () => {
      await rights.configure({ [ann]: "admin", [ben]: "chat", "a.org": "chat" });
      await rights.set(ben, "operate", by());
      await rights.set("a.org", null, by());
      await rights.configure({ [ann]: "admin", [ben]: "operate" });
      expect(await inForce()).toEqual({ [ann]: ["admin", null], [ben]: ["operate", null] });
      await rights.configure({ [ann]: "admin" });
      expect(await rights.of(ben)).toBe("none");
    });
  });

  describe("a permission that is set by hand", () => {
    beforeEach(() => rights.configure({ [ann]: "admin", "a.org": "chat" }));

    it("is in force at once, here and in the other processes", async () => {
      const hearers: (() => void)[] = [];
      const here = newRights({ ...nobodyElse, tell: () => hearers.forEach((hear) => void hear()) });
      const there = newRights({ ...nobodyElse, on: (_, hear) => void hearers.push(() => hear([])) });
      await here.configure({ [ann]: "admin", "a.org": "chat" });
      await here.set(ben, "operate", by());
      expect(await here.of(ben)).toBe("operate");
      await eventually(async () => (await there.of(ben)) === "operate", { what: "the other process to hear of it" });
    });

    it("is written down with who, from what, to what, once for one command", async () => {
      const command = by();
      const done = await rights.set("a.org", "use", command);
      expect(done).toMatchObject({ actor: ann, subject: "permission of a.org", before: "chat", after: "use" });
      await rights.set("a.org", "none", by());
      expect(await rights.set("a.org", "use", command)).toEqual(done);
      expect(await rights.of(ben)).toBe("none");
      const newest = await new Audit(database()).newest(2);
      expect(newest.map(({ before, after }) => [before, after])).toEqual([
        ["use", "none"],
        ["chat", "use"],
      ]);
    });

    it.each<Level | null>([null, "none", "operate"])("never makes the last admin %s", async (level) => {
      await expect(rights.set(ann, level, by())).rejects.toThrow("the last who is named an admin");
      expect(await rights.of(ann)).toBe("admin");
      await rights.set("@*:a.org", "admin", by());
      await expect(rights.set(ann, level, by())).rejects.toThrow("the last who is named an admin");
      await rights.set(ben, "admin", by());
      await rights.set(ann, level, by());
      expect(rights.admins).toEqual([ben]);
      await expect(rights.set(ben, level, by(ben))).rejects.toThrow("the last who is named an admin");
    });

    it("leaves one admin when two take each other's right at the same time", async () => {
      await rights.set(ben, "admin", by());
      const each = [rights.set(ben, null, by(ann)), rights.set(ann, null, by(ben))];
      const outcomes = await Promise.allSettled(each);
      expect(outcomes.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
      expect(rights.admins).toHaveLength(1);
    });
  });

  describe("for whom a turn acts", () => {
    const people = Object.fromEntries(levels.map((level) => [level, `@${level}:a.org` as UserId]));
    const wake = (requester: UserId | undefined): TakenWake => ({ requester: requester ?? null }) as TakenWake;
    beforeEach(() => rights.configure(Object.fromEntries(levels.map((level) => [`@${level}:a.org`, level]))));
    const mayDo = (wakes: readonly TakenWake[], owner: UserId) => rights.leastOf(requesters(wakes, owner));

    const pairs = levels.flatMap((one, i) => levels.map((other, j) => ({ one, other, least: i < j ? one : other })));
    it.each(pairs)("for somebody with $one and somebody with $other, whose turn has: $least", async (pair) => {
      const wakes = [wake(people[pair.one]), wake(people[pair.other])];
      expect(await mayDo(wakes, "@admin:a.org" as UserId)).toBe(pair.least);
    });

    it.each(levels)("where nobody caused it, for the owner, who has %s", async (level) => {
      expect(await mayDo([wake(undefined)], `@${level}:a.org` as UserId)).toBe(level);
    });

    it("when the timer rings, for the owner", async () => {
      const agent = await addAgent(database());
      const agents = new Agents(database());
      await agents.setTimer(agent.name, 0);
      await agents.wakeByTimer();
      const [row] = await database().sql`select requester from wakes where agent = ${agent.name}`;
      expect(row?.requester).toBe(agent.owner);
    });
  });

  describe("to be ignored", () => {
    it.each<[string, Permissions, boolean]>([
      ["whom no rule names", {}, false],
      ["who is named with none", { [ben]: "none" }, true],
      ["whose homeserver is named with none", { "a.org": "none" }, true],
      ["who may chat, although their homeserver is named with none", { [ben]: "chat", "a.org": "none" }, false],
    ])("%s", async (_who, permissions, isIgnored) => {
      await rights.configure(permissions);
      expect(await rights.ignores(ben)).toBe(isIgnored);
      expect(await rights.of(ben)).toBe(permissions[ben] ?? "none");
    });
  });

  it("for members of a room follow the membership", async () => {
    const room: RoomId = newRoom();
    await rights.configure({ [room]: "operate" });
    await setMember(database(), room, ann, "join");
    expect([await rights.of(ann), await rights.of(ben)]).toEqual(["operate", "none"]);
    await setMember(database(), room, ann, "leave");
    expect(await rights.of(ann)).toBe("none");
  });
});
