import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { eventually } from "../support/poll.ts";
import { say } from "../support/scripted-model.ts";
import { Stage } from "../support/stage.ts";
import type { TestUser } from "../support/user.ts";

describe.each(["embedded", "postgres"] as const)("on the %s database", (database) => {
  let stage: Stage;
  let ann: TestUser;
  beforeAll(async () => {
    stage = await Stage.set({ database });
    await stage.bridge.start();
    ann = await stage.user("ann");
  });
  afterAll(() => stage.strike());

  it("an agent that was invited answers what it is asked, once", async () => {
    stage.model.on("ping", (request) => say(request, room, "pong", { final: true }));
    const room = await stage.directRoom(ann);
    await ann.say(room, "ping");
    await ann.waitForMessage(room, ({ body }) => body === "pong");
    const said = (await ann.messages(room)).map(({ body }) => body);
    expect(said).toEqual(["ping", "pong"]);
  });

  it("what was done is counted", async () => {
    const look = async () =>
      (await get("/metrics")).text.includes('clevernet_turn_duration_seconds_count{outcome="done"} 1');
    await eventually(look, { what: "the turn to be counted" });
    const nothingWaits = async () => (await get("/metrics")).text.includes('clevernet_waiting{what="outbox"} 0');
    await eventually(nothingWaits, { what: "the echo of the answer" });
    const { text } = await get("/metrics");
    expect(text).toMatch(/^clevernet_events_received_total [1-9]/m);
    expect(text).toContain('clevernet_model_call_duration_seconds_count{model="scripted",outcome="done"} 1');
    expect(text).toContain('clevernet_model_tokens_total{model="scripted",kind="prompt"} 1000');
    expect(text).toContain("clevernet_database_up 1");
    expect(text).toMatch(/^clevernet_homeserver_requests_total\{status="200"\} [1-9]/m);
    expect(text).toMatch(/^nodejs_eventloop_lag_p99_seconds /m);
  });

  it("is ready only while the homeserver answers", async () => {
    expect(await get("/health/ready")).toMatchObject({ status: 200, json: { ready: true } });
    await stage.toHomeserver.refuse();
    const away = async () => (await get("/health/ready")).status === 503;
    await eventually(away, { what: "the bridge not to be ready" });
    expect((await get("/health/ready")).json).toEqual({
      ready: false,
      started: true,
      database: true,
      homeserver: false,
      sole: true,
    });
    expect((await get("/health/live")).status).toBe(200);
    await stage.toHomeserver.accept();
    await eventually(async () => (await get("/health/ready")).status === 200, { what: "the bridge to be ready" });
  });

  it.runIf(database === "postgres")("ends when it is asked to, also while it waits for the homeserver", async () => {
    await stage.bridge.stop();
    await stage.toHomeserver.refuse();
    await stage.bridge.start({ isReady: false });
    expect(await stage.bridge.stop()).toBe(0);
    await stage.toHomeserver.accept();
    await stage.bridge.start();
  });

  it("leaves nothing undone", () => stage.check());

  const get = async (path: string) => {
    const response = await fetch(stage.bridge.url + path);
    const text = await response.text();
    return {
      status: response.status,
      text,
      json: response.headers.get("content-type")?.includes("json") ? JSON.parse(text) : undefined,
    };
  };
});
