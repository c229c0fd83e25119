import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { answerEach, answerTo } from "../support/answers.ts";
import { killedOnEachDatabase, type Scene, saidIn, sendsTo } from "../support/faults.ts";
import type { Fault, HttpProxy } from "../support/http-proxy.ts";
import { callMatrix } from "../support/matrix-api.ts";
import { say } from "../support/scripted-model.ts";
import { Stage } from "../support/stage.ts";
import type { TestUser } from "../support/user.ts";

killedOnEachDatabase((scene) => {
  const sends = ({ stage, room }: Scene) => stage.toHomeserver.requests.filter(sendsTo(room));

  /** The homeserver has the answer, and the bridge dies before it hears so. Its echo is held back. */
  const dieUnheard = async ({ stage, ann, room }: Scene, text: string): Promise<Fault> => {
    const answer = stage.toHomeserver.holdAnswer({ when: sendsTo(room) });
    const { promise: echo, resolve } = Promise.withResolvers<Fault>();
    stage.model.on(text, (request) => {
      resolve(stage.toBridge.hold());
      return answerEach(request);
    });
    await ann.say(room, text);
    await answer.reached();
    await stage.bridge.kill();
    answer.lift();
    return echo;
  };

  it("a message that was accepted, unheard by a bridge that died, is found and not sent again", async () => {
    const { stage, ann, room } = scene();
    const echo = await dieUnheard(scene(), "four");
    await stage.bridge.start();
    await expect.poll(() => stage.bridge.log).toContain("the homeserver has it already");
    echo.lift();
    await stage.check();
    expect(await saidIn(ann, room)).toEqual(["four", answerTo("four")]);
    expect(sends(scene())).toHaveLength(1);
  });

  it("a message that was sent, by a bridge that died before its echo, is found and not sent again", async () => {
    const { stage, ann, room } = scene();
    const { promise: echo, resolve } = Promise.withResolvers<Fault>();
    stage.model.on("six", (request) => {
      resolve(stage.toBridge.hold());
      return answerEach(request);
    });
    await ann.say(room, "six");
    await ann.waitForMessage(room, ({ body }) => body === answerTo("six"));
    await stage.bridge.kill();
    await stage.bridge.start();
    await expect.poll(() => stage.bridge.log).toContain("the homeserver has it already");
    (await echo).lift();
    await stage.check();
    expect(await saidIn(ann, room)).toEqual(["six", answerTo("six")]);
    expect(sends(scene())).toHaveLength(1);
  });

  it("it stays one event also where the homeserver has forgotten its transaction ids by then", async () => {
    const { stage, ann, room } = scene();
    const echo = await dieUnheard(scene(), "five");
    await stage.homeserver.synapse.kill();
    stage.homeserver.forgetTransactions();
    await stage.homeserver.synapse.restart();
    await stage.bridge.start();
    await expect.poll(() => stage.bridge.log).toContain("the homeserver has it already");
    echo.lift();
    await stage.check();
    expect(await saidIn(ann, room)).toEqual(["five", answerTo("five")]);
  });

  it("and where it has forgotten them while the bridge waited for it", async () => {
    const { stage, ann, room } = scene();
    stage.model.on("three", answerEach);
    const answer = stage.toHomeserver.holdAnswer({ when: sendsTo(room), times: 1 });
    await ann.say(room, "three");
    await answer.reached();
    await stage.homeserver.synapse.kill();
    stage.homeserver.forgetTransactions();
    stage.homeserver.unqueueNewest();
    stage.toHomeserver.cut();
    answer.lift();
    await stage.homeserver.synapse.restart();
    await expect.poll(() => stage.bridge.log, { timeout: 30_000 }).toContain("the homeserver has it already");
    await stage.check();
    expect(await saidIn(ann, room)).toEqual(["three", answerTo("three")]);
    expect(sends(scene())).toHaveLength(1);
  });

  it("a message that the homeserver never had is sent after a death", async () => {
    const { stage, ann, room } = scene();
    stage.model.on("two", answerEach);
    const send = stage.toHomeserver.hold({ when: sendsTo(room) });
    await ann.say(room, "two");
    await send.reached();
    await stage.bridge.kill();
    stage.toHomeserver.cut();
    send.lift();
    await stage.bridge.start();
    await ann.waitForMessage(room, ({ body }) => body === answerTo("two"));
    await stage.check();
    expect(await saidIn(ann, room)).toEqual(["two", answerTo("two")]);
  });
});

/** States of the room's messages in the outbox. */
const rowsOf = (stage: Stage, room: string) =>
  stage.query<{ state: string }>(`select state from outbox where room_id = '${room}' and kind = 'message' order by id`);

describe("while it runs", () => {
  let stage: Stage;
  let ann: TestUser;
  beforeAll(async () => {
    stage = await Stage.set({ database: "postgres", agents: { helper: {}, twin: {} } });
    ann = await stage.user("ann");
    await stage.bridge.start();
  });
  afterAll(() => stage.strike());

  it("two agents that say the same in one room at the same moment are two events of the right senders", async () => {
    const room = await stage.room(ann, [], ["helper", "twin"]);
    const both = Promise.withResolvers<void>();
    let asked = 0;
    stage.model.on("seven", async function* (request) {
      asked += 1;
      if (asked === 2) both.resolve();
      yield { wait: both.promise };
      yield say(request, room, "the same", { final: true });
    });
    const mentions = { "m.mentions": { user_ids: [stage.agentId("helper"), stage.agentId("twin")] } };
    await ann.say(room, "seven", mentions);
    const isSame = ({ body }: { body: string }) => body === "the same";
    const answers = async () => (await ann.messages(room)).filter(isSame).map(({ sender }) => sender);
    await expect.poll(async () => (await answers()).length).toBe(2);
    await stage.check();
    expect((await answers()).sort()).toEqual([stage.agentId("helper"), stage.agentId("twin")]);
  });

  it("a message is marked as sent by its echo, also where that comes before the homeserver's answer", async () => {
    const room = await stage.directRoom(ann);
    stage.model.on("early echo", answerEach);
    const answer = stage.toHomeserver.holdAnswer({ when: sendsTo(room) });
    await ann.say(room, "early echo");
    await expect.poll(() => rowsOf(stage, room)).toEqual([{ state: "sent" }]);
    answer.lift();
    await stage.check();
    expect(await saidIn(ann, room)).toEqual(["early echo", answerTo("early echo")]);
    expect(stage.toHomeserver.requests.filter(sendsTo(room))).toHaveLength(1);
  });

  it("a message whose echo does not come is marked as sent nevertheless", async () => {
    const room = await stage.directRoom(ann);
    const { promise: echo, resolve } = Promise.withResolvers<Fault>();
    stage.model.on("no echo", (request) => {
      resolve(stage.toBridge.hold());
      return answerEach(request);
    });
    await ann.say(room, "no echo");
    await expect.poll(() => rowsOf(stage, room)).toEqual([{ state: "sent" }]);
    (await echo).lift();
    await stage.check();
    expect(await saidIn(ann, room)).toEqual(["no echo", answerTo("no echo")]);
  });

  /** An agent says three things in one step, and the first attempt to send meets the fault. */
  const sayThree = async (text: string, strike: (proxy: HttpProxy, room: string) => Fault) => {
    const room = await stage.directRoom(ann);
    const parts = [1, 2, 3].map((n) => `${text} ${n}`);
    stage.model.on(text, (request) => parts.map((part, index) => say(request, room, part, { final: index === 2 })));
    const fault = strike(stage.toHomeserver, room);
    await ann.say(room, text);
    await fault.reached();
    const struck = performance.now();
    await ann.waitForMessage(room, ({ body }) => body === parts[2], { within: 90_000 });
    const waited = performance.now() - struck;
    await stage.check();
    expect(await saidIn(ann, room)).toEqual([text, ...parts]);
    const sends = stage.toHomeserver.requests.filter(sendsTo(room)).map(({ path }) => path);
    return { waited, sends };
  };

  it("a homeserver that says how long to wait is not asked before", async () => {
    const body = { errcode: "M_LIMIT_EXCEEDED", error: "slower" };
    const limit = { status: 429, headers: { "retry-after": "4" }, body };
    const { waited, sends } = await sayThree("limited", (proxy, room) => {
      // The first takes so long that the others are ready to be sent; the second meets the limit.
      proxy.delay(700, { when: sendsTo(room), times: 1 });
      return proxy.respond(limit, { when: sendsTo(room), times: 1 });
    });
    expect(waited).toBeGreaterThan(3_500);
    expect(sends).toHaveLength(4);
    expect(sends[1]).toBe(sends[2]);
  });

  it("a gateway that says how long to wait, in no words of Matrix, is not asked before", async () => {
    const limit = { status: 503, headers: { "retry-after": "4" }, body: "busy" };
    const { waited } = await sayThree("busy", (proxy, room) => proxy.respond(limit, { when: sendsTo(room), times: 1 }));
    expect(waited).toBeGreaterThan(3_500);
  });

  it("what a gateway fails to pass on is sent again, in order", async () => {
    const { sends } = await sayThree("gateway", (proxy, room) =>
      proxy.respond({ status: 502, body: "bad gateway" }, { when: sendsTo(room), times: 2 }),
    );
    expect(sends).toHaveLength(5);
  });

  it.each([
    ...[
      { status: 404, body: "404 page not found" },
      { status: 404, body: { errcode: "M_UNRECOGNIZED", error: "Unrecognized request" } },
      { status: 200, body: "back soon" },
    ].map((answer) => ({ ...answer, isAfter: false })),
    ...[{}, { event_id: "" }].flatMap((body) => [false, true].map((isAfter) => ({ status: 200, body, isAfter }))),
  ])(
    "what something answers for the homeserver, $status $body (after: $isAfter), is sent again, in order",
    async (answer) => {
      const strike = (proxy: HttpProxy, room: string) => proxy.respond(answer, { when: sendsTo(room), times: 1 });
      const { sends } = await sayThree(`odd ${JSON.stringify(answer)}`, strike);
      // The echo may say that it is there before it is sent again.
      if (answer.isAfter) expect(sends.length).toBeLessThanOrEqual(4);
      else expect(sends).toHaveLength(4);
    },
  );

  it("what an agent says whose device the homeserver has deleted is sent by the device made anew", async () => {
    const room = await stage.directRoom(ann);
    stage.model.on("device", answerEach);
    const { as_token } = stage.homeserver.registration;
    const as = { query: { user_id: stage.agentId() } };
    const { devices } = await callMatrix(stage.homeserver.url, as_token, "GET", "v3/devices", as);
    for (const { device_id } of devices as { device_id: string }[])
      await callMatrix(stage.homeserver.url, as_token, "DELETE", `v3/devices/${device_id}`, as);
    await ann.say(room, "device");
    await ann.waitForMessage(room, ({ body }) => body === answerTo("device"));
    expect(await callMatrix(stage.homeserver.url, as_token, "GET", "v3/devices", as)).toEqual({ devices });
  });

  it("what was accepted and not confirmed, the connection being reset, is one event, in order", async () => {
    await sayThree("reset", (proxy, room) => proxy.cutAnswer({ when: sendsTo(room), times: 2 }));
  });

  it("what was accepted and not confirmed within the 60 s that the bridge waits is one event, in order", async () => {
    await sayThree("silence", (proxy, room) => proxy.holdAnswer({ when: sendsTo(room), times: 1 }));
  }, 120_000);

  it.each([
    ["in plain words", "not here"],
    ["in no words for a table", "not\0 here \ud83d"],
  ])(
    "what is refused for good, %s, is given up, told to the agent and to people, and holds nothing up",
    async (how, error) => {
      const question = `what happened ${how}?`;
      const room = await stage.directRoom(ann);
      stage.model
        .on(`refused ${how}`, (request) => [say(request, room, "no"), say(request, room, "yes", { final: true })])
        .on(question, answerEach);
      const forbidden = { status: 403, body: { errcode: "M_FORBIDDEN", error } };
      stage.toHomeserver.respond(forbidden, { when: sendsTo(room), times: 1 });
      await ann.say(room, `refused ${how}`);
      await ann.waitForMessage(room, ({ body }) => body === "yes");
      await ann.say(room, question);
      const { body } = await stage.model.request(question);
      expect(JSON.stringify(body)).toContain("M_FORBIDDEN");
      await stage.check();
      const isNotice = (text: string) => text.includes("was not taken by the homeserver");
      const said = await saidIn(ann, room);
      expect(said.filter((text) => !isNotice(text))).toEqual([`refused ${how}`, "yes", question, answerTo(question)]);
      expect(said.filter(isNotice)).toEqual([expect.stringContaining("403 M_FORBIDDEN")]);
    },
  );

  it("what is refused for good in a thread is told in the thread, and a notice that is refused too is the last", async () => {
    const room = await stage.directRoom(ann);
    stage.model
      .on("a thread", answerEach)
      .on("refused there", (request) => say(request, room, "no", { final: true, threadId: root }));
    const tooLarge = { status: 413, body: { errcode: "M_TOO_LARGE", error: "event too large" } };
    const root = await ann.say(room, "a thread");
    await ann.waitForMessage(room, ({ sender }) => sender !== ann.id);
    const fault = stage.toHomeserver.respond(tooLarge, { when: sendsTo(room), times: 1 });
    await ann.say(room, "refused there");
    const notice = await ann.waitForMessage(room, ({ body }) => body.includes("413 M_TOO_LARGE"));
    expect(notice.content["m.relates_to"]).toMatchObject({ rel_type: "m.thread", event_id: root });
    fault.lift();
    const all = stage.toHomeserver.respond(tooLarge, { when: sendsTo(room) });
    await ann.say(room, "refused there");
    await expect.poll(() => all.struck.length).toBe(2);
    await stage.check();
    all.lift();
    expect(all.struck).toHaveLength(2);
  });
});
