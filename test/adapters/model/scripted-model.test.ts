import { describe, expect, it, onTestFinished } from "vitest";
import { createChatModel } from "../../../src/adapters/model/chat.ts";
import { silentLog } from "../../../src/base/lib/log.ts";
import { element } from "../../../src/base/lmml/element.ts";
import { render } from "../../../src/base/lmml/render.ts";
import { fixedClock } from "../../support/fixed-clock.ts";
import { newMessages, ScriptedModel, say } from "../../support/scripted-model.ts";

const started = async (): Promise<ScriptedModel> => {
  const server = await new ScriptedModel().start();
  onTestFinished(() => server.stop());
  return server;
};

const ask = (server: ScriptedModel, content: string, tools: string[] = []) =>
  createChatModel({
    baseUrl: server.url,
    apiKey: "",
    clock: fixedClock({ instantBelow: 100_000 }),
    log: silentLog,
  }).complete(
    {
      model: "m",
      temperature: undefined,
      messages: [{ role: "user", content }],
      tools: tools.map((name) => ({ name, description: "", parameters: { type: "object" } })),
      mayCallInParallel: true,
      sessionId: "s",
    },
    new AbortController().signal,
  );
const text = async (...args: Parameters<typeof ask>) => (await ask(...args)).text;

const place = { systemId: "s", roomId: "!room:s", timestamp: "t" };
const message = (body: string) => element("message", { ...place, sender: "@you:s", messageType: "m.text" }, body);
const chatInterface = (history: string, news: string) =>
  render(
    element("chatInterface", { currentDatetime: "now", agentUnderlyingModel: "m", agentRunningOnSystem: "s" }, [
      element("chatSystem", { systemId: "s", loggedInAs: "@agent_helper:s" }, [
        element("room", { ...place, roomName: "Room", loggedInAs: "@agent_helper:s" }, [
          element("window", { windowId: "w", srcType: "chatHistory", src: "!room:s", contentType: "text/lmml" }, [
            element("content", {}, [message(history)]),
          ]),
          element("newEvents", {}, [message(news)]),
        ]),
      ]),
    ]),
  );

describe("scripted model", () => {
  it("answers by the first rule that matches and is not used up, else by the one for everything", async () => {
    const server = await started();
    server.on("tea", "first", { times: 1 }).on(/te./, "second").onEvery("third");
    expect(await text(server, "tea?")).toBe("first");
    expect(await text(server, "tea?")).toBe("second");
    expect(await text(server, "coffee?")).toBe("third");
  });

  it("matches what is new, not what is history", async () => {
    const server = await started();
    server.on("tea", "tea rule").on("coffee", "coffee rule");
    expect(await text(server, chatInterface("tea", "coffee"))).toBe("coffee rule");
    expect(server.requests.map((request) => newMessages(request).map(({ body }) => body))).toEqual([["coffee"]]);
  });

  it("speaks by the tool as it is named in the request", async () => {
    const server = await started();
    server.onEvery((request) => say(request, "!room:s", "hello", { final: true }));
    const { toolCalls } = await ask(server, "", ["React_k3f9", "SendMessage_k3f9"]);
    expect(toolCalls[0]?.name).toBe("SendMessage_k3f9");
    expect(JSON.parse(toolCalls[0]?.arguments ?? "")).toEqual({ roomId: "!room:s", content: "hello", final: true });
  });

  it("holds an answer until the test lets it go", async () => {
    const server = await started();
    const gate = Promise.withResolvers<void>();
    server.onEvery(async function* () {
      yield "before ";
      await gate.promise;
      yield "after";
    });
    const answer = text(server, "");
    const request = await server.request(() => true);
    expect(request.wasAborted).toBe(false);
    gate.resolve();
    expect(await answer).toBe("before after");
    await request.closed;
    expect(request.wasAborted).toBe(false);
  });

  it("refuses what no rule matches, and says so when it is stopped", async () => {
    const server = await new ScriptedModel().start();
    await expect(ask(server, "what now?")).rejects.toThrow("no rule");
    await expect(server.stop()).rejects.toThrow("what now?");
  });

  it("can be started again where it was", async () => {
    const first = await new ScriptedModel().start();
    const port = Number(new URL(first.url).port);
    await first.stop();
    const second = await new ScriptedModel().start(port);
    onTestFinished(() => second.stop());
    expect(second.url).toBe(first.url);
  });
});
