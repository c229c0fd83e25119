import { describe, expect, it } from "vitest";
import { requestBody } from "../../../src/adapters/model/request.ts";
import type { ChatRequest } from "../../../src/adapters/model/types.ts";

const request: ChatRequest = {
  model: "m",
  temperature: undefined,
  messages: [{ role: "user", content: "hello" }],
  tools: [],
  parallelToolCalls: true,
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

  it("offers tools as functions", () => {
    expect(requestBody({ ...request, tools }, "localhost").tools).toEqual([{ type: "function", function: tools[0] }]);
  });

  it("forbids parallel calls only where tools are offered", () => {
    const forbidden = { ...request, parallelToolCalls: false };
    expect(requestBody({ ...forbidden, tools }, "localhost").parallel_tool_calls).toBe(false);
    expect(requestBody(forbidden, "localhost")).not.toHaveProperty("parallel_tool_calls");
    expect(requestBody({ ...request, tools }, "localhost")).not.toHaveProperty("parallel_tool_calls");
  });
});
