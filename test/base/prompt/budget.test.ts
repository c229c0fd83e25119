import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type Allotment, type Budget, divide, logLimit, logRoom, nothing } from "../../../src/base/prompt/budget.ts";

const wants = (some: Partial<Allotment>): Allotment => ({ ...nothing, ...some });
const sum = (allotment: Partial<Allotment>) => Object.values(allotment).reduce((total, chars) => total + chars, 0);
const budgetOf = (left: number, wanted: Partial<Allotment>, newEventsLeast = 0): Budget => ({
  max: 50_000,
  left,
  wanted: wants(wanted),
  newEventsLeast,
});
const partNames = Object.keys(nothing) as (keyof Allotment)[];
const anyWants = fc.record(
  Object.fromEntries(partNames.map((part) => [part, fc.nat(100_000)])),
) as fc.Arbitrary<Allotment>;
const anyBudget: fc.Arbitrary<Budget> = fc
  .record({ max: fc.integer({ min: 6_800, max: 200_000 }), frame: fc.nat(2_500), wanted: anyWants, least: fc.nat() })
  .map(({ max, frame, wanted, least }) => {
    const newEventsLeast = least % (Math.min(6_000, wanted.newEvents) + 1);
    return { max, left: max - frame, wanted, newEventsLeast };
  });
const system = ["systemPrompt", "persona", "guides"] as const;
const news = ["reminders", "newEvents", "postPrompt", "members", "admins"] as const;

const past = { history: 0, activity: 0, ephemeris: 0, otherRooms: 0, rooms: 0, unread: 0 };

describe("the division", () => {
  test("gives never more than there is, and to no part more than it wants", () => {
    fc.assert(
      fc.property(anyBudget, (budget) => {
        const given = divide(budget);
        expect(sum(given)).toBeLessThanOrEqual(budget.left);
        for (const part of partNames) {
          expect(given[part]).toBeLessThanOrEqual(budget.wanted[part]);
          expect(given[part]).toBeGreaterThanOrEqual(0);
        }
      }),
    );
  });

  test("gives all that there is if it is wanted, but for what the system message leaves free", () => {
    fc.assert(
      fc.property(anyBudget, ({ wanted, ...rest }) => {
        const budget = { ...rest, wanted: { ...wanted, systemPrompt: 100, persona: 100, guides: 100 } };
        expect(sum(divide(budget))).toBe(Math.min(budget.left, sum(budget.wanted)));
      }),
    );
  });

  test("gives what is not needed to the first that wants more, and to the past only what nothing else needs", () => {
    const given = divide(budgetOf(10_000, { newEvents: 5_000, history: 50_000, scratchpad: 500 }));
    expect(given).toEqual(wants({ newEvents: 5_000, scratchpad: 500, history: 4_500 }));
  });

  test("gives a part, however greedy, not the share of one behind it", () => {
    const given = divide(budgetOf(10_000, { turn: 1_000_000, windows: 1_000, history: 800, ephemeris: 1_000 }));
    expect(given).toMatchObject({ windows: 1_000, history: 800, ephemeris: 1_000 });
  });

  test("leaves to the past half of what the agent's work could fill", () => {
    expect(divide(budgetOf(10_000, { windows: 90_000, history: 90_000 }))).toMatchObject({
      windows: 5_000,
      history: 5_000,
    });
  });
});

describe("what defines the agent, and what is new", () => {
  test("never gives way to the past, nor to a log", () => {
    fc.assert(
      fc.property(anyBudget, fc.double({ min: 0, max: 1, noNaN: true }), (budget, part) => {
        const none = { ...budget, wanted: { ...budget.wanted, ...past } };
        const [given, without] = [divide(budget, Math.floor(logRoom(budget) * part)), divide(none)];
        for (const name of [...system, ...news]) expect(given[name]).toBe(without[name]);
      }),
    );
  });

  test("nothing is cut for what stands below it beyond half of what both could have", () => {
    const work = ["turn", "status", "todos", "recalled", "windows", "scratchpad"] as const;
    fc.assert(
      fc.property(anyBudget, (budget) => {
        const log = logRoom(budget);
        const given = divide(budget, log);
        const sumOf = (names: readonly (keyof Allotment)[]) => names.reduce((total, name) => total + given[name], 0);
        const isCut = (names: readonly (keyof Allotment)[]) => names.some((name) => given[name] < budget.wanted[name]);
        const below = sumOf(Object.keys(past) as (keyof Allotment)[]) + log;
        if (isCut(news)) expect(below).toBe(0);
        if (isCut(work)) expect(below).toBeLessThanOrEqual(sumOf(work) + 1);
        if (isCut(["unread", "rooms"])) expect(log).toBeLessThanOrEqual(below - log + 1);
      }),
    );
  });

  test("leaves no room to the log while anything new is cut", () => {
    fc.assert(
      fc.property(anyBudget, (budget) => {
        const given = divide(budget);
        if (news.some((name) => given[name] < budget.wanted[name])) expect(logRoom(budget)).toBe(0);
      }),
    );
  });

  test("is shown whole wherever there is room for it, whatever else is wanted", () => {
    fc.assert(
      fc.property(anyBudget, ({ wanted, max, left, newEventsLeast }) => {
        const scale = (name: keyof Allotment, most: number) => wanted[name] % Math.max(1, Math.floor(most));
        const some = Object.fromEntries([
          ...system.map((name) => [name, scale(name, (max * 0.35) / 3)]),
          ...news.map((name) => [name, scale(name, ((left - max * 0.4) * 0.75) / 5)]),
        ]);
        const given = divide({ max, left, wanted: { ...wanted, ...some }, newEventsLeast });
        for (const name of [...system, ...news]) expect(given[name]).toBe(some[name]);
      }),
    );
  });

  test("gets the same for its system message, whatever else there is, where no new event is left out for it", () => {
    fc.assert(
      fc.property(anyBudget, anyWants, ({ max, wanted }, others) => {
        const large = Math.max(max, 50_000);
        const few = { reminders: 300, postPrompt: 0, members: 1_300, admins: 100, rooms: 500, unread: 500 };
        const given = [wanted, others].map((each) =>
          divide({
            max: large,
            left: large - 2_000,
            wanted: { ...each, systemPrompt: wanted.systemPrompt, persona: 900, guides: 5_000, ...few },
            newEventsLeast: 2_000,
          }),
        );
        for (const name of system) expect(given[0]?.[name]).toBe(given[1]?.[name]);
      }),
    );
  });

  test("leaves out no new event for a long definition of the agent in a small context", () => {
    const wanted = { systemPrompt: 2_000, persona: 2_000, guides: 5_000, newEvents: 3_000, reminders: 230 };
    const given = divide({ max: 6_800, left: 5_300, wanted: wants(wanted), newEventsLeast: 3_000 });
    expect(given.newEvents).toBe(3_000);
    expect(given.reminders).toBe(230);
  });
});

describe("a log", () => {
  test("is cut for good by what is always there, not by what is new in one turn", () => {
    const usual = { guides: 5_000, reminders: 300, members: 1_000 };
    const limit = logLimit(budgetOf(41_000, usual));
    expect(limit).toBe(logLimit(budgetOf(41_000, { ...usual, newEvents: 40_000, turn: 9_000, windows: 16_000 })));
    expect(limit).toBeGreaterThan(20_000);
    expect(limit).toBeLessThan(logRoom(budgetOf(41_000, usual)));
    expect(logRoom(budgetOf(41_000, { ...usual, newEvents: 40_000 }))).toBe(0);
  });
});
