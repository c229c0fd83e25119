import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { UserId } from "../../../src/base/lib/ids.ts";
import {
  actorKind,
  includesLevel,
  type Level,
  levelOf,
  levels,
  type Permissions,
} from "../../../src/domain/rights/permissions.ts";

const nowhere = () => false;
const level = (permissions: Permissions, userId: string, rooms: readonly string[] = []): Level =>
  levelOf(permissions, userId as UserId, (roomId) => rooms.includes(roomId));

describe("permissions", () => {
  it("let nobody do anything when there are none", () => {
    expect(levelOf({}, "@you:example.org" as UserId, nowhere)).toBe("none");
  });

  it("know a person by the full user id alone", () => {
    const permissions: Permissions = { "@admin:home.org": "admin" };
    expect(level(permissions, "@admin:home.org")).toBe("admin");
    for (const stranger of [
      "@admin:evil.org",
      "@admin:home.org.evil.org",
      "@admin:home.or",
      "@Admin:home.org",
      "admin",
    ]) {
      expect(level(permissions, stranger), stranger).toBe("none");
    }
  });

  it("give nothing to a display name, even one that looks like a user id", () => {
    expect(level({ "The Admin": "admin", Admin: "admin" }, "@admin:home.org")).toBe("none");
    expect(level({ "@admin:home.org": "admin" }, "@evil:evil.org (@admin:home.org)")).toBe("none");
  });

  it("treat an agent's name on another server as any stranger's", () => {
    const permissions: Permissions = { "@agent_x:home.org": "operate", "home.org": "chat" };
    expect(level(permissions, "@agent_x:evil.org")).toBe("none");
  });

  it("fit a pattern within localpart and server, not across", () => {
    const permissions: Permissions = { "@*:example.org": "chat" };
    expect(level(permissions, "@mia:example.org")).toBe("chat");
    expect(level(permissions, "@mia:example.org.evil.org")).toBe("none");
    expect(level(permissions, "@mia:evil.org:example.org")).toBe("none");
    expect(level(permissions, "@:example.org")).toBe("none");
    expect(level({ "@adm*:*": "use" }, "@adm:a.org")).toBe("use");
    expect(level({ "@*a*b*:*.org": "use" }, "@xaybz:a.org")).toBe("use");
    expect(level({ "@*a*b*:*.org": "use" }, "@xbyaz:a.org")).toBe("none");
    expect(level({ "@ab*ba:a.org": "use" }, "@aba:a.org")).toBe("none");
  });

  it("fit a pattern to exactly those texts that it describes", () => {
    const letters = fc.string({ unit: fc.constantFrom("a", "b"), minLength: 1, maxLength: 8 });
    const pattern = fc.string({ unit: fc.constantFrom("a", "b", "*"), minLength: 1, maxLength: 8 });
    fc.assert(
      fc.property(letters, pattern, (localpart, wanted) => {
        fc.pre(wanted.includes("*"));
        const fits = new RegExp(`^${wanted.replaceAll("*", ".*")}$`).test(localpart);
        expect(level({ [`@${wanted}:a.org`]: "chat" }, `@${localpart}:a.org`)).toBe(fits ? "chat" : "none");
      }),
    );
  });

  it("take no longer for a hostile pattern", () => {
    const permissions: Permissions = { [`@${"*a".repeat(60)}*b:example.org`]: "admin" };
    expect(level(permissions, `@${"a".repeat(200)}:example.org`)).toBe("none");
  });

  it("let the most specific rule win: user id, pattern with more letters, room, server", () => {
    const permissions: Permissions = {
      "example.org": "operate",
      "!room:example.org": "use",
      "@*:example.org": "chat",
      "@m*:example.org": "admin",
      "@mia:example.org": "none",
    };
    const rooms = ["!room:example.org"];
    expect(level(permissions, "@mia:example.org", rooms)).toBe("none");
    expect(level(permissions, "@max:example.org", rooms)).toBe("admin");
    expect(level(permissions, "@tom:example.org", rooms)).toBe("chat");
    const { "@*:example.org": _, ...withoutPattern } = permissions;
    expect(level(withoutPattern, "@tom:example.org", rooms)).toBe("use");
    expect(level(withoutPattern, "@tom:example.org")).toBe("operate");
  });

  it("let the lower level win between equals", () => {
    const permissions: Permissions = { "!a:example.org": "admin", "!longer:example.org": "chat" };
    expect(level(permissions, "@mia:x.org", ["!a:example.org", "!longer:example.org"])).toBe("chat");
    expect(level({ "@a*:x.org": "operate", "@*a:x.org": "use" }, "@aa:x.org")).toBe("use");
  });

  it.each([
    ["@you:example.org", "user"],
    ["@*:example.org", "pattern"],
    ["@*:*", "pattern"],
    ["!id:example.org", "room"],
    ["!v12roomwithoutserver", "room"],
    ["example.org", "server"],
    ["localhost:8448", "server"],
    ["[::1]:8448", "server"],
    ["@*", undefined],
    ["*", undefined],
    ["#room:example.org", undefined],
    ["Mia Müller", undefined],
    ["", undefined],
  ])("read %j as %s", (actor, kind) => {
    expect(actorKind(actor)).toBe(kind);
  });

  it("include every level before", () => {
    expect(levels.filter((other) => includesLevel("use", other))).toEqual(["none", "chat", "use"]);
  });
});
