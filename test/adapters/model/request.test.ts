import { describe, expect, it } from "vitest";
import { requestBody } from "../../../src/adapters/model/request.ts";
import type { ChatRequest } from "../../../src/adapters/model/types.ts";

const request: ChatRequest = {
  model: "m",
  temperature: undefined,
  messages: [{ role: "user", content: "hello" }],
  tools: [],
  mayCallInParallel: true,
  sessionId: "conversation-1",
};
const tools = [{ name: "Send_k3f9", description: "Sends.", parameters: { type: "object", properties: {} } }];

describe("request", () => {
  it("says nothing that it was not asked to say", () => {
    expect(requestBody(request, "localhost")).toEqual({
      model: "m",
      messages: [{ role: "user", content: "hello" }],
      stream: true,
      stream_options: { include_usage: true },
    });
  });

  it("asks OpenRouter for the cost and for one cache a session", () => {
    const body = requestBody(request, "openrouter.ai");
    expect(body).toMatchObject({ usage: { include: true }, session_id: "conversation-1" });
  });

  it("gives OpenAI the session as its cache key, and no field that it refuses", () => {
    const body = requestBody(request, "api.openai.com");
    expect(body).toMatchObject({ prompt_cache_key: "conversation-1" });
    expect(body).not.toHaveProperty("session_id");
    expect(body).not.toHaveProperty("usage");
  });

  it("passes temperature zero on", () => {
    expect(requestBody({ ...request, temperature: 0 }, "localhost").temperature).toBe(0);
  });

  const chosen = { ...request, reasoning: "high", maxTokens: 500 } as const;
  it.each([
    ["openrouter.ai", { reasoning: { effort: "high" }, max_tokens: 500 }],
    ["api.openai.com", { reasoning_effort: "high", max_completion_tokens: 500 }],
    ["localhost", { reasoning_effort: "high", max_tokens: 500 }],
  ])("says effort and length as %s takes them", (host, fields) => {
    const { model: _, messages, stream, stream_options, ...sent } = requestBody(chosen, host);
    expect(sent).toEqual(expect.objectContaining(fields));
    const names = Object.keys(sent).filter((name) => /reasoning|max/.test(name));
    expect(names.sort()).toEqual(Object.keys(fields).sort());
  });

  it("says how many tokens of thoughts there may be", () => {
    expect(requestBody({ ...request, reasoning: 4000 }, "openrouter.ai")).toMatchObject({
      reasoning: { max_tokens: 4000 },
    });
  });

  it("offers tools as functions", () => {
    expect(requestBody({ ...request, tools }, "localhost").tools).toEqual([{ type: "function", function: tools[0] }]);
  });

  it("forbids parallel calls only where tools are offered", () => {
    const forbidden = { ...request, mayCallInParallel: false };
    expect(requestBody({ ...forbidden, tools }, "localhost").parallel_tool_calls).toBe(false);
    expect(requestBody(forbidden, "localhost")).not.toHaveProperty("parallel_tool_calls");
    expect(requestBody({ ...request, tools }, "localhost")).not.toHaveProperty("parallel_tool_calls");
  });
});

it("a model is sent the record of its own thoughts, and of nobody else's", () => {
  const answered = { role: "assistant", content: "…", toolCalls: [], reasoningDetails: [{ text: "hm" }] } as const;
  const models = [undefined, request.model, "other"];
  const messages = models.map((model) => ({ ...answered, model }));
  const sent = requestBody({ ...request, messages }, "openrouter.ai").messages;
  expect(sent.map((message) => "reasoning_details" in message)).toEqual([true, true, false]);
});
