import { describe, expect, it } from "vitest";
import { z } from "zod";
import { systemClock } from "../../../src/base/lib/clock.ts";
import { UserError } from "../../../src/base/lib/errors.ts";
import type { OperationRecord } from "../../../src/domain/tables/operation-record.ts";
import { outcomeUnknown } from "../../../src/engine/operations/operation.ts";
import {
  carryOut,
  type Decided,
  type Ledger,
  type OperationRow,
  parseLine,
} from "../../../src/engine/operations/protocol.ts";
import { defineTool, type Tool, type ToolContext } from "../../../src/engine/operations/tool.ts";

const row: OperationRow = {
  key: "key",
  tool: "Count",
  kind: "update",
  summary: "",
  input: {},
  inputHash: "hash",
  requesters: [],
};

/** A tool that counts its runs, allowed to run, and a ledger that remembers what begins. */
function setUp({
  row: given = row,
  isKnown = false,
  ...tool
}: Partial<Tool> & { row?: OperationRow; isKnown?: boolean } = {}) {
  const begun: OperationRecord[] = [];
  let runs = 0;
  const counter = defineTool({
    name: "Count",
    set: "core",
    description: "Counts.",
    kind: "update",
    isRepeatable: false,
    input: z.object({}),
    run: async () => ({ result: `run ${++runs}` }),
    ...tool,
  });
  const context = { signal: new AbortController().signal, files: { sources: [], taint: [] } } as unknown as ToolContext;
  const decided: Decided = {
    decision: "run",
    request: { tool: counter, input: {}, todo: undefined },
    kind: "update",
    context,
    row: given,
  };
  const ledger: Ledger = {
    clock: systemClock,
    ask: () => Promise.reject(new Error("nobody is asked")),
    begin: async (record) => {
      begun.push(record);
      return !isKnown;
    },
    breakOff: async (_row, { thrown }) => {
      throw thrown;
    },
  };
  return { begun, runs: () => runs, carry: () => carryOut(decided, ledger) };
}

describe("an operation that may run", () => {
  it("is written down before it runs, and its record afterwards is its key and its end", async () => {
    const { begun, carry } = setUp();
    const { record } = await carry();
    expect(begun).toEqual([{ ...row, state: "running" }]);
    expect(record).toEqual({ key: "key", state: "done", result: "run 1", milliseconds: expect.any(Number) });
  });

  it("is written down only when it has ended, if it may be repeated", async () => {
    const { begun, carry } = setUp({ isRepeatable: true });
    expect((await carry()).record).toMatchObject({ ...row, state: "done" });
    expect(begun).toEqual([]);
  });

  it("is written down before it runs, though it may be repeated, where people were asked", async () => {
    const { begun, carry } = setUp({ isRepeatable: true, row: { key: "key" } });
    await carry();
    expect(begun).toEqual([{ key: "key", state: "running" }]);
  });

  it("does not run where somebody else has begun it, and its outcome is unknown", async () => {
    const { carry, runs } = setUp({ isKnown: true });
    expect((await carry()).record).toEqual({ key: "key", state: "unknown", result: outcomeUnknown, milliseconds: 0 });
    expect(runs()).toBe(0);
  });

  it("is recorded as unknown where its tool says so", async () => {
    const run = async () => ({ result: "who knows", isUnknown: true });
    expect((await setUp({ run }).carry()).record).toMatchObject({ state: "unknown", result: "who knows" });
  });

  it("has failed where its caller has made a mistake", async () => {
    const mistake = async () => {
      throw new UserError("there is nothing to count");
    };
    const { ended } = await setUp({ run: mistake }).carry();
    expect(ended).toMatchObject({ state: "failed", error: "there is nothing to count" });
  });

  it("is handed to the ledger where something else is thrown", async () => {
    const defect = async () => {
      throw new TypeError("a defect");
    };
    await expect(setUp({ run: defect }).carry()).rejects.toThrow(TypeError);
  });
});

describe("a line behind a tool's command", () => {
  const tool = defineTool({
    name: "Say",
    set: "core",
    description: "Says.",
    kind: "create",
    isRepeatable: false,
    input: z.object({ content: z.string().describe("The text") }),
    run: async ({ content }) => ({ result: content }),
  });

  const caller = { agent: { name: "helper" }, roomId: "!room:test" } as Parameters<typeof parseLine>[0];

  it("gives a request, with the todo that it names", () => {
    const request = { tool, input: { content: "good morning" }, todo: 3 };
    expect(parseLine(caller, tool, "--todo 3 good morning")).toEqual({ state: "valid", request });
  });

  it("gives the mistake in it", () => {
    expect(parseLine(caller, tool, "--to Ann hello")).toMatchObject({
      state: "invalid",
      mistake: expect.stringMatching("--to"),
    });
  });
});
