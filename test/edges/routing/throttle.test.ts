import { describe, expect, it } from "vitest";
import type { RoomId, UserId } from "../../../src/base/lib/ids.ts";
import { Throttle } from "../../../src/edges/routing/throttle.ts";

const [ann, ben] = ["@ann:test", "@ben:test"] as UserId[] as [UserId, UserId];
const [here, there] = ["!here", "!there"] as RoomId[] as [RoomId, RoomId];

const throttle = (limits: { requester: number; room: number }) => {
  let now = 0;
  const clock = { now: () => new Date(now), monotonic: () => now, sleep: async () => {} };
  const made = new Throttle(() => limits, clock);
  const admitted = (person: UserId, room: RoomId, times: number) =>
    Array.from({ length: times }, () => made.admit(person, room)).filter((admission) => admission === "admitted")
      .length;
  return {
    admit: made.admit.bind(made),
    admitted,
    command: made.admitCommand.bind(made),
    waking: made.admitWakingCommand.bind(made),
    pass: (seconds: number) => {
      now += seconds * 1000;
    },
  };
};

describe("the throttle", () => {
  it("admits as many of one person as a minute allows, in whatever rooms", () => {
    const { admitted } = throttle({ requester: 10, room: 1_000 });
    expect(admitted(ann, here, 6) + admitted(ann, there, 6)).toBe(10);
    expect(admitted(ben, here, 6)).toBe(6);
  });

  it("admits as many in one room as a minute allows, of whomever", () => {
    const { admitted } = throttle({ requester: 1_000, room: 10 });
    expect(admitted(ann, here, 6) + admitted(ben, here, 6)).toBe(10);
    expect(admitted(ben, there, 6)).toBe(6);
  });

  it("admits again as time passes, and never more than at first", () => {
    const { admitted, pass } = throttle({ requester: 60, room: 1_000 });
    admitted(ann, here, 100);
    pass(5);
    expect(admitted(ann, here, 100)).toBe(5);
    pass(10_000);
    expect(admitted(ann, here, 100)).toBe(60);
  });

  it("what a room does not admit does not count for the person", () => {
    const { admitted } = throttle({ requester: 10, room: 5 });
    admitted(ann, here, 100);
    expect(admitted(ann, there, 100)).toBe(5);
  });

  it("is told once, until nothing more is counted", () => {
    const { admit, admitted, pass } = throttle({ requester: 60, room: 1_000 });
    admitted(ann, here, 60);
    expect([admit(ann, here), admit(ann, here)]).toEqual(["told", "refused"]);
    pass(30);
    admitted(ann, here, 30);
    expect(admit(ann, here)).toBe("refused");
    pass(60);
    admitted(ann, here, 60);
    expect(admit(ann, here)).toBe("told");
  });

  it("counts commands by themselves, of one person in whatever rooms", () => {
    const { admitted, command, pass } = throttle({ requester: 10, room: 5 });
    const commands = (times: number) => Array.from({ length: times }, () => command(ann));
    admitted(ann, here, 100);
    expect(commands(12)).toEqual([...Array(10).fill("admitted"), "told", "refused"]);
    expect(command(ben)).toBe("admitted");
    pass(6);
    expect(commands(2)).toEqual(["admitted", "refused"]);
  });

  it("tells once of commands that come too fast, whichever limit is met first", () => {
    const { admitted, command, waking, pass } = throttle({ requester: 10, room: 1_000 });
    admitted(ann, here, 9);
    const wakes = (times: number) =>
      Array.from({ length: times }, () => (command(ann) === "admitted" ? waking(ann, here) : "not read"));
    expect(wakes(3)).toEqual(["admitted", "told", "refused"]);
    expect(Array.from({ length: 8 }, () => command(ann))).toEqual([...Array(7).fill("admitted"), "refused"]);
    pass(120);
    expect(wakes(12)).toEqual([...Array(10).fill("admitted"), "not read", "not read"]);
  });

  it("forgets those who have long been quiet", () => {
    const { admit, admitted, pass } = throttle({ requester: 2, room: 1e9 });
    admitted(ann, here, 2);
    for (let n = 0; n < 10_000; n++) admit(`@user${n}:test` as UserId, here);
    expect(admit(ann, here)).not.toBe("admitted");
    pass(120);
    admit("@one-more:test" as UserId, here);
    expect(admitted(ann, here, 3)).toBe(2);
  });
});
