import { describe, expect, it } from "vitest";
import { modelFor } from "../../../src/domain/agents/models.ts";
import { type AgentSettings, parseAgentSettings } from "../../../src/domain/agents/settings.ts";

type Models = AgentSettings["models"];

const choose = (kind: keyof Models, written: object, models: Models = {}) =>
  modelFor({ settings: parseAgentSettings(written, "test") }, kind, { name: "common", models });

describe("the model for a kind of task", () => {
  it.each([
    [{}, {}, "common"],
    [{}, { think: { name: "thinker" } }, "thinker"],
    [{ model: "own" }, { think: { name: "thinker" } }, "own"],
    [{ model: "own", models: { think: { name: "deep" } } }, {}, "deep"],
  ])("thinks: the agent's own before the configuration's (%j, %j)", (agent, configured, model) => {
    expect(choose("think", agent, configured).model).toBe(model);
  });

  it.each([
    [{ model: "own" }, {}, "own"],
    [{ models: { think: { name: "deep" } } }, {}, "deep"],
    [{ model: "own" }, { read: { name: "fast" } }, "fast"],
    [{ models: { read: { name: "faster" } } }, { read: { name: "fast" } }, "faster"],
  ])("reads: the one that thinks where none is chosen (%j, %j)", (agent, configured, model) => {
    expect(choose("read", agent, configured).model).toBe(model);
  });

  it.each([
    [{ model: "own" }, {}, "own"],
    [{ models: { think: { name: "deep" } } }, {}, "deep"],
    [{ model: "own" }, { see: { name: "seer" } }, "seer"],
    [{ models: { see: { name: "eyes" } } }, { see: { name: "seer" } }, "eyes"],
    [{ model: "own", models: { see: { maxTokens: 100 } } }, {}, "own"],
  ])("sees: the one that thinks where none is chosen (%j, %j)", (agent, configured, model) => {
    expect(choose("see", agent, configured).model).toBe(model);
  });

  it("sees with what is set of the one that thinks, unless anything is set of the one that sees", () => {
    const think = { reasoning: "high", temperature: 0.5 } as const;
    expect(choose("see", {}, { think })).toEqual(choose("think", {}, { think }));
    expect(choose("see", { temperature: 0.3 }, { think, see: { name: "seer" } })).toEqual({
      model: "seer",
      temperature: 0.3,
    });
  });

  it("is sent nothing that nobody has set but the temperature: the agent's to think, 0 to read", () => {
    expect(choose("think", { temperature: 0.3 })).toEqual({ model: "common", temperature: 0.3 });
    expect(choose("read", { temperature: 0.3 })).toEqual({ model: "common", temperature: 0 });
  });

  it("is sent no temperature where that is null", () => {
    expect(choose("think", { temperature: null }).temperature).toBeUndefined();
    expect(choose("read", {}, { read: { temperature: null } }).temperature).toBeUndefined();
    expect(choose("think", { temperature: 1 }, { think: { temperature: null } }).temperature).toBeUndefined();
  });

  it("has the options of whoever chooses for the kind, and not some of each", () => {
    const configured = { think: { reasoning: "high", maxTokens: 100 } } as const;
    expect(choose("think", {}, configured)).toMatchObject({ reasoning: "high", maxTokens: 100 });
    const own = choose("think", { models: { think: { reasoning: 500 } } }, configured);
    expect(own).toEqual({ model: "common", temperature: 1, reasoning: 500 });
  });
});
