import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { powerOf, readMember, readPowerLevels, readRoomName, readTopic } from "../../../src/adapters/matrix/state.ts";
import type { UserId } from "../../../src/base/lib/ids.ts";

describe("room state", () => {
  it("tells a member", () => {
    const content = { membership: "invite", displayname: "Mia", is_direct: true, reason: "come in" };
    expect(readMember(content)).toEqual({
      membership: "invite",
      displayName: "Mia",
      isDirect: true,
      reason: "come in",
    });
  });

  it("ignores fields of the wrong type", () => {
    expect(readMember({ membership: "join", displayname: 5, is_direct: "yes", reason: [] })).toEqual({
      membership: "join",
      displayName: undefined,
      isDirect: false,
      reason: undefined,
    });
    expect(readRoomName({ name: {} })).toBeUndefined();
    expect(readRoomName({ name: " " })).toBeUndefined();
    expect(readTopic({ topic: null })).toBeUndefined();
  });

  it("knows no membership but those of the specification", () => {
    expect(readMember({ membership: "owner" })).toBeUndefined();
    expect(readMember({ membership: ["join"] })).toBeUndefined();
    expect(readMember(undefined)).toBeUndefined();
  });

  it("tells name and topic", () => {
    expect(readRoomName({ name: "Kitchen" })).toBe("Kitchen");
    expect(readTopic({ topic: "Tea" })).toBe("Tea");
  });

  it("has the specification's defaults for power", () => {
    const levels = readPowerLevels({});
    expect(levels).toMatchObject({ usersDefault: 0, eventsDefault: 0, stateDefault: 50, redact: 50 });
    expect(powerOf(levels, "@mia:example.org" as UserId)).toBe(0);
  });

  it("reads power as numbers and as the texts of old rooms, and ignores the rest", () => {
    const levels = readPowerLevels({
      users: { "@a:x": 100, "@b:x": "50", "@c:x": "many", "@d:x": 1.5, __proto__: null },
      users_default: " 10 ",
      events: { "m.room.name": 75 },
      events_default: null,
    });
    expect([...levels.users]).toEqual([
      ["@a:x", 100],
      ["@b:x", 50],
    ]);
    expect(powerOf(levels, "@c:x" as UserId)).toBe(10);
    expect(powerOf(levels, "constructor" as UserId)).toBe(10);
    expect(levels.events.get("m.room.name")).toBe(75);
    expect(levels.eventsDefault).toBe(0);
  });

  it("is read from anything without an error", () => {
    fc.assert(
      fc.property(fc.anything(), (content) => {
        readMember(content);
        readRoomName(content);
        readTopic(content);
        readPowerLevels({ users: content, events: content, users_default: content });
      }),
    );
  });
});
