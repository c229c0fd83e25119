import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { RequestHead } from "../support/http-proxy.ts";
import { callMatrix } from "../support/matrix-api.ts";
import { answer, roomOf, roomSeen } from "../support/sight.ts";
import { Stage } from "../support/stage.ts";
import type { TestUser } from "../support/user.ts";

describe.each(["embedded", "postgres"] as const)("invitations, on the %s database", (database) => {
  let stage: Stage;
  let ann: TestUser;
  let stranger: TestUser;
  beforeAll(async () => {
    stage = await Stage.set({
      database,
      agents: { helper: {}, hermit: { autoJoinInvites: false } },
      permissions: { "@admin:clevernet.test": "admin", "@ann:clevernet.test": "chat" },
    });
    await stage.bridge.start();
    [ann, stranger] = await Promise.all([stage.user("ann"), stage.user("stranger")]);
    stage.model.on("ping", (request) => answer(request, "pong"));
  });
  afterAll(() => stage.strike());

  const membershipOf = async (user: TestUser, room: string, userId: string) =>
    user.api("GET", `v3/rooms/${encodeURIComponent(room)}/state/m.room.member/${encodeURIComponent(userId)}`);
  const refused = async (user: TestUser, agent: string) => {
    const room = await user.createDirectRoom(stage.agentId(agent));
    await user.waitForMembership(room, "leave", stage.agentId(agent));
    return String((await membershipOf(user, room, stage.agentId(agent))).reason);
  };

  it("of people who have no permission are refused, with the reason", async () => {
    expect(await refused(stranger, "helper")).toContain("@stranger:clevernet.test has no permission to talk to helper");
  });

  it("and messages of the same are told to those who run the bridge, once for each person", async () => {
    const admin = await stage.user("admin");
    const direct = await admin.createDirectRoom("@clevernet:clevernet.test");
    await admin.waitForMessage(direct, ({ body }) => body.includes("control room"));
    const control = admin.client.getRooms().find((room) => room.getMyMembership() === "invite")?.roomId ?? "";
    await admin.join(control);
    const [first, second] = await Promise.all(["mia", "tom"].map((name) => stage.user(name)));
    if (!first || !second) throw new Error("nobody is there");
    await refused(first, "helper");
    await refused(first, "helper");
    const room = await stage.room(ann, [second], ["helper"]);
    for (const question of ["one", "two"]) await second.mention(room, stage.agentId(), question);
    await second.waitForMessage(room, ({ body }) => body.includes("has no permission to talk to me here"));
    await admin.waitForMessage(control, ({ body }) => body.includes("`!permission set @tom:clevernet.test chat`"));
    const told = (await admin.messages(control)).filter(({ body }) => body.includes("wants to talk to an agent"));
    expect(told.map(({ body }) => body.split(" ")[0])).toEqual(["@mia:clevernet.test", "@tom:clevernet.test"]);
  });

  it("into a room that is encrypted in an unknown way are accepted, and the agent says at once that it cannot read there", async () => {
    const content = { algorithm: "org.example.unknown" };
    const room = await ann.createRoom({ initial_state: [{ type: "m.room.encryption", state_key: "", content }] });
    await ann.invite(room, stage.agentId());
    const cannot = await ann.waitForMessage(room, ({ sender }) => sender === stage.agentId());
    expect(cannot.body).toContain("encrypted in a way that I cannot read");
    await ann.api("PUT", `v3/rooms/${encodeURIComponent(room)}/send/m.room.message/plain`, {
      body: { msgtype: "m.text", body: "ping" },
    });
    const refusal = await ann.waitForMessage(room, ({ body }) => body.includes("in a way in which I cannot answer"));
    expect(refusal.sender).toBe(stage.agentId());
  });

  it("are refused by an agent that accepts none", async () => {
    expect(await refused(ann, "hermit")).toBe("hermit does not accept invitations.");
  });

  describe("of an agent that does not exist", () => {
    it("create nothing, and nobody comes", async () => {
      const nobody = stage.agentId("nobody");
      const room = await ann.createDirectRoom(nobody);
      await stage.directRoom(ann);
      expect(await membershipOf(ann, room, nobody)).toMatchObject({ membership: "invite" });
      const profile = callMatrix(stage.homeserver.url, "", "GET", `v3/profile/${encodeURIComponent(nobody)}`);
      await expect(profile).rejects.toMatchObject({ status: 404 });
    });

    it.each([
      ["nobody", 404],
      ["helper", 200],
    ])("the homeserver that asks for agent_%s is told %i", async (name, status) => {
      const path = `_matrix/app/v1/users/${encodeURIComponent(stage.agentId(name))}`;
      const response = await fetch(new URL(path, stage.homeserver.applicationServiceUrl), {
        headers: { authorization: `Bearer ${stage.homeserver.registration.hs_token}` },
      });
      expect(response.status).toBe(status);
    });
  });

  it("sent while the bridge was down are accepted when it is back", async () => {
    await stage.bridge.stop();
    const room = await ann.createDirectRoom(stage.agentId());
    await stage.bridge.start();
    await ann.waitForMembership(room, "join", stage.agentId());
  });

  it("that the homeserver never pushed are found by the sweep", async () => {
    await stage.bridge.stop();
    const isPush = ({ path }: RequestHead) => path.includes("/transactions/");
    const room = await ann.createDirectRoom(stage.agentId());
    const fault = stage.toBridge.respond({ status: 503 }, { when: isPush });
    await stage.bridge.start();
    await ann.waitForMembership(room, "join", stage.agentId());
    fault.lift();
  });

  it("that were accepted make rooms in which the agent answers", async () => {
    const room = await stage.directRoom(ann);
    await ann.say(room, "ping");
    await ann.waitForMessage(room, ({ body }) => body === "pong");
    const request = await stage.model.request((candidate) => roomOf(candidate) === room);
    expect(roomSeen(request, room)?.attributes.directMessage).toBe(true);
  });

  it("leave nothing unfinished, and no agent that was not configured", async () => {
    await stage.check();
    const agents = await stage.query<{ name: string }>("select name from agents order by name");
    expect(agents.map(({ name }) => name)).toEqual(["helper", "hermit"]);
    expect(await stage.query("select 1 from outbox where sender like '@agent_nobody:%'")).toEqual([]);
  });
});
