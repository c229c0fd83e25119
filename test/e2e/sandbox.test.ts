import { afterAll, beforeAll, describe, expect, inject, it, vi } from "vitest";
import { isCard, obey, resultOf } from "../support/obedient.ts";
import { eventually } from "../support/poll.ts";
import { describeSandbox } from "../support/sandbox.ts";
import { localHost } from "../support/sandbox-host.ts";
import { userText } from "../support/scripted-model.ts";
import { answer } from "../support/sight.ts";
import { Stage } from "../support/stage.ts";
import type { Message, TestUser } from "../support/user.ts";

const idleSeconds = 10;
// On a busy machine a container takes its time.
vi.setConfig({ testTimeout: 180_000 });

describeSandbox("commands on the computer of a conversation", () => {
  // The journal of commands is held on both databases by its own tests.
  describe("on the postgres database", () => {
    const database = "postgres";
    let stage: Stage;
    let ann: TestUser;
    let ben: TestUser;
    beforeAll(async () => {
      const sandbox = inject("sandbox");
      stage = await Stage.set({
        database,
        permissions: { "@ann:clevernet.test": "operate", "@ben:clevernet.test": "use" },
        config: { sandbox: { kind: "podman", image: "tools" in sandbox ? sandbox.tools : "", idleSeconds } },
      });
      obey(stage.model);
      await stage.bridge.start();
      [ann, ben] = await Promise.all([stage.user("ann"), stage.user("ben")]);
    });
    afterAll(async () => {
      await stage.bridge.kill();
      for (const { name } of await stage.query<{ name: string }>("select name from sandboxes"))
        await localHost().remove(name);
      await stage.strike();
    });

    const isAnswerTo = (id: string) => (message: Message) => message.content["org.clevernet.command"] === id;
    const command = async (room: string, line: string, by = ann): Promise<string> =>
      (await by.waitForMessage(room, isAnswerTo(await by.say(room, line)), { within: 40_000 })).body;
    let calls = 0;
    const call = async (room: string, tool: string, input: object): Promise<number> => {
      await ann.mention(room, stage.agentId(), `do ${++calls} ${tool} ${JSON.stringify(input)}`);
      return calls;
    };

    it("a model runs one, and is told how it ended", async () => {
      const room = await stage.directRoom(ann);
      const result = await resultOf(
        ann,
        room,
        await call(room, "run_command", { command: "echo 6*7 | bc || echo $((6*7)); exit 3" }),
      );
      expect(result).toMatch(/<command number="1" exitCode="3">/);
      expect(result).toMatch(/<stdout>\s*42\s*<\/stdout>/);
    });

    it("runs once and gives its result, though the bridge is killed while it runs", async () => {
      const room = await stage.directRoom(ann);
      const line = "echo began >>/workspace/count; sleep 6; echo ended >>/workspace/count; echo survived";
      const number = await call(room, "run_command", { command: line });
      await eventually(async () => (await command(room, "!run cat /workspace/count")).includes("began"), {
        what: "it to begin",
        within: 60_000,
      });
      await stage.bridge.kill();
      await stage.bridge.start();
      expect(await resultOf(ann, room, number, 40_000)).toContain("survived");
      expect(await command(room, "!run cat /workspace/count")).toContain("began\nended\n```");
    });

    it.each(["kill", "stop"] as const)(
      "a person's, too (%s), whose output is one message that is edited",
      async (end) => {
        const room = await stage.directRoom(ann);
        await command(room, "!run true");
        const id = await ann.say(room, "!run echo first; echo x >>/workspace/count; sleep 7; echo last");
        const first = await ann.waitForMessage(room, ({ body }) => body.includes("first") && body.includes("It runs"));
        await stage.bridge[end]();
        await stage.bridge.start();
        const answered = await ann.waitForMessage(room, isAnswerTo(id), { within: 40_000 });
        expect(answered.content["m.relates_to"]).toMatchObject({ rel_type: "m.replace", event_id: first.id });
        expect(answered.body).toContain("first\nlast\n");
        expect(answered.body).toContain("exit code 0");
        expect(await command(room, "!run cat /workspace/count")).toContain("```\nx\n```");
        const edits = (await ann.messages(room)).filter(
          ({ content }) => (content["m.relates_to"] as { event_id?: string } | undefined)?.event_id === first.id,
        );
        expect(edits.length).toBeLessThan(10);
      },
    );

    it("ends by `!stop` within a second", async () => {
      const room = await stage.directRoom(ann);
      await command(room, "!run true");
      await call(room, "run_command", { command: "touch /workspace/began; sleep 1234" });
      await eventually(async () => (await command(room, "!run ls /workspace")).includes("began"), {
        what: "it to begin",
        within: 60_000,
      });
      await command(room, "!stop");
      expect(await command(room, "!run sleep 1; pgrep -c sleep")).toMatch(/```\n0\n```/);
    });

    it("in the background goes on until `!stop NUMBER`, and is listed until then", async () => {
      const room = await stage.room(ann, [ben], ["helper"]);
      expect(await command(room, "!sandbox")).toContain("no computer here yet");
      expect(await command(room, "!start", ben)).not.toContain("computer");
      expect(await command(room, "!start")).toContain("Its computer here is made ready");
      await expect.poll(() => command(room, "!sandbox"), { timeout: 60_000 }).toContain("The computer runs");
      expect(await command(room, "!status")).toContain("- computer: runs");
      const begun = await command(room, "!run --background echo hello; sleep 1234");
      const number = /Command (\d+) runs in the background/.exec(begun)?.[1];
      expect(begun).toContain(`!stop ${number}`);
      expect(await command(room, "!sandbox", ben)).toContain(
        `- ${number}: \`echo hello; sleep 1234\`, in the background`,
      );
      expect(await command(room, `!stop ${number}`, ben)).toContain("operate");
      expect(await command(room, `!stop ${number}`)).toBe(`Command ${number} was stopped.`);
      await expect.poll(() => command(room, `!stop ${number}`)).toContain("no command");
    });

    it("sees nothing of another room's", async () => {
      const [one, other] = [await stage.directRoom(ann), await stage.directRoom(ann)];
      await command(one, "!run echo secret >/workspace/file");
      expect(await command(other, "!run ls -A /workspace; cat /workspace/file")).not.toContain("secret");
      expect(await command(one, "!run cat /workspace/file")).toContain("secret");
    });

    it("finds its files after its computer was stopped as idle", async () => {
      const room = await stage.directRoom(ann);
      await command(room, "!run echo kept >/workspace/file; nohup sleep 1234 >/dev/null 2>&1 &");
      const isStopped = async () => (await command(room, "!sandbox")).includes("The computer is stopped");
      await eventually(isStopped, { within: 40_000, what: "the computer to be stopped" });
      expect(await command(room, "!run cat /workspace/file; pgrep -c sleep")).toMatch(/```\nkept\n0\n```/);
    });

    it("is removed with all its files by who may operate; the agent has to ask", async () => {
      const room = await stage.room(ann, [ben], ["helper"]);
      await command(room, "!run echo doomed >/workspace/file");
      expect(await command(room, "!sandbox reset", ben)).toContain("you need the right to operate");
      const number = await call(room, "reset_sandbox", {});
      const card = await ann.waitForMessage(room, isCard);
      expect(await command(room, "!run cat /workspace/file")).toContain("doomed");
      await command(room, `!approve ${card.content["org.clevernet.operation"]}`);
      expect(await resultOf(ann, room, number, 40_000)).toContain("was removed");
      expect(await command(room, "!run ls -A /workspace")).not.toContain("file");
    });

    it("is given by nobody who may only read", async () => {
      const room = await stage.room(ann, [ben], ["helper"]);
      expect(await command(room, "!run id", ben)).toContain("you need the right to operate");
    });

    it("leaves nothing behind that is not told", async () => stage.check());
  });

  it("are offered to nobody where there are none, and people are told why", async () => {
    const stage = await Stage.set({
      database: "embedded",
      config: { sandbox: { kind: "podman", podman: "/nowhere/podman" } },
    });
    try {
      stage.model.on("hello", (request) => answer(request, "hello"));
      await stage.bridge.start();
      const admin = await stage.user("admin");
      const room = await stage.directRoom(admin);
      await eventually(() => stage.bridge.log.includes("agents cannot run commands"), {
        what: "the self-test",
        within: 60_000,
      });
      for (const line of ["!run id", "!sandbox"]) {
        const id = await admin.say(room, line);
        const answered = await admin.waitForMessage(room, (message) => message.content["org.clevernet.command"] === id);
        expect(answered.body).toContain("Install Podman 4.3 or newer");
      }
      await admin.mention(room, stage.agentId(), "hello");
      const request = await stage.model.request((one) => userText(one).includes("hello"));
      const offered = request.body.tools.map((tool) => tool.function.name.replace(/_[^_]*$/, ""));
      expect(offered).toContain("SendMessage");
      expect(offered).not.toContain("run_command");
    } finally {
      await stage.strike();
    }
  });
});
