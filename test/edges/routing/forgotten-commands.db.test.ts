import { beforeEach, describe, expect, it } from "vitest";
import { digest, type RoomId, type UserId } from "../../../src/base/lib/ids.ts";
import { blank } from "../../../src/base/lib/repeats.ts";
import { render } from "../../../src/base/lmml/render.ts";
import { functionCall } from "../../../src/base/prompt/ephemeris.ts";
import { workingFile } from "../../../src/domain/files/working-files.ts";
import { Forgetting } from "../../../src/domain/memory/forget.ts";
import type { AgentRow } from "../../../src/domain/tables/agents.ts";
import { settle } from "../../../src/domain/tables/effects.ts";
import { Events } from "../../../src/domain/tables/events.ts";
import { Files } from "../../../src/domain/tables/files.ts";
import type { Memory } from "../../../src/domain/tables/interactions.ts";
import { RedactionMarks } from "../../../src/domain/tables/redaction-marks.ts";
import { SandboxCommandTable } from "../../../src/domain/tables/sandbox-commands.ts";
import { SandboxTable } from "../../../src/domain/tables/sandboxes.ts";
import { Turns } from "../../../src/domain/tables/turns.ts";
import { WrittenFiles } from "../../../src/domain/tables/written-files.ts";
import { blankRepetitions } from "../../../src/edges/routing/blanking.ts";
import { noApprovals } from "../../support/approvals.ts";
import { onEachDatabase } from "../../support/database.ts";
import { addAgent, call, newKey, newRoom, newUser, setMember, storeEvent, wake } from "../../support/rows.ts";

onEachDatabase((database) => {
  let agent: AgentRow;
  let roomId: RoomId;
  let ann: UserId;
  beforeEach(async () => {
    [agent, roomId, ann] = [await addAgent(database()), newRoom(), newUser()];
    for (const user of [ann, agent.userId]) await setMember(database(), roomId, user, "join");
  });

  /** A command by which Ann has an agent keep something. */
  const command = async (line: string, tool: string, input: Record<string, string>, kept: readonly Memory[] = []) => {
    const event = await storeEvent(database(), { roomId, sender: ann, content: { msgtype: "m.text", body: line } });
    const done = {
      ...call({ key: digest("command", event.eventId), tool, input, summary: line }),
      state: "done",
    } as const;
    const operation = { ...done, agent: agent.name, sources: [roomId], audience: [ann], kept };
    await settle(database(), event, { shownChars: line.length, operation: { ...operation, requesters: [ann] } });
    return event;
  };
  const write = (name: "NOW.md" | "LOG.md" | "facts.json", text: string) =>
    new Files(database()).write({
      ...workingFile({ agent: agent.name, roomId }, name),
      contentType: "text/plain",
      text,
      owner: agent.userId,
    });
  const keepAll = async () => {
    const memory = { kind: "observation", tool: "Remember", importance: 0.7 } as const;
    await command("!remember the shed opens with golf77", "Remember", { content: "the shed opens with golf77" }, [
      { ...memory, text: "the shed opens with golf77" },
    ]);
    await command("!fact shed golf77", "set_fact", { key: "shed", value: "golf77" });
    await write("facts.json", `{\n  "shed": "golf77",\n  "language": "Danish"\n}\n`);
    await command('!now "open it with golf77" next', "update_status", {
      new_status_text: "open it with golf77",
      next_step: "next",
    });
    await write("NOW.md", "Status: open it with golf77\nNext: next\n");
    await command("!log THOUGHT golf77 it was", "log_activity", { entry_type: "THOUGHT", content: "golf77 it was" });
    await write("LOG.md", "[2026-01-01 12:00] THOUGHT: golf77 it was\n[2026-01-01 12:01] THOUGHT: it rained\n");
  };
  const left = async (): Promise<string[]> => {
    const rows = await database().sql<{ text: string }[]>`
      select content::text as text from events where room_id = ${roomId}
      union all select text from interactions where room_id = ${roomId}
      union all select to_jsonb(o)::text from operations o where room_id = ${roomId}
      union all select text_content from files where path like ${`/${roomId}/%`}
      union all select text_content from file_versions where path like ${`/${roomId}/%`}`;
    return rows.map(({ text }) => text).filter((text) => text.includes("golf77"));
  };
  const forget = async (words?: string) => {
    const events = new Events(database());
    await new Forgetting(database(), events).all({ roomId, agents: [agent.name], words, by: ann });
    const marks = new RedactionMarks(database());
    const open = await database().sql<{ eventId: never; places: RoomId[]; prints: string[] }[]>`
      select event_id as "eventId", places, prints from redactions where places[1] = ${roomId}`;
    for (const mark of open)
      await blankRepetitions(mark, { events, marks, files: new WrittenFiles(database()), approvals: noApprovals });
  };

  describe("what a person had kept by command", () => {
    it.each([
      ["everything", undefined],
      ["the word", "golf77"],
    ])("is nowhere when %s is forgotten", async (_, words) => {
      await keepAll();
      expect(await left()).toHaveLength(12);
      await forget(words);
      expect(await left()).toEqual([]);
    });

    it("is gone from what is kept of the command, also where it is a word like any other", async () => {
      await command("!fact hue ultramarine", "set_fact", { key: "hue", value: "ultramarine" });
      await forget();
      const [row] = await database().sql`select to_jsonb(o)::text as text from operations o where room_id = ${roomId}`;
      expect(row?.text).not.toContain("ultramarine");
    });

    it("is gone from the computer on which it ran, with what it printed", async () => {
      const { eventId } = await command("!run echo quokka", "run_command", { command: "echo quokka" });
      const [at, commands] = [{ agent: agent.name, roomId }, new SandboxCommandTable(database())];
      const key = digest("command", eventId);
      await new SandboxTable(database()).claim(at, newKey(), "default");
      const draft = { ...at, key, boot: "b", command: "echo quokka", requesters: [ann], sources: [roomId] };
      await commands.begin({ ...draft, isBackground: false });
      await commands.finish(key, { reason: "exit", code: 0, stdout: { text: "quokka", isCut: false } });
      await forget("quokka");
      expect(await commands.find(key)).toMatchObject({ command: "", outcome: { reason: "exit", code: 0 } });
      const [row] = await database().sql`select to_jsonb(c)::text as text from sandbox_commands c where key = ${key}`;
      expect(row?.text).not.toContain("quokka");
    });

    it("goes alone: what others have kept stays", async () => {
      await keepAll();
      await forget();
      const text = async (name: "LOG.md" | "facts.json") =>
        (await new Files(database()).read([workingFile({ agent: agent.name, roomId }, name)]))[0]?.text;
      expect(await text("facts.json")).toBe('{\n  "language": "Danish"\n}\n');
      expect(await text("LOG.md")).toContain("THOUGHT: it rained");
    });
  });

  describe("what the agent has kept in its own words", () => {
    const turnOf = async (requester: UserId, value: string) => {
      await wake(database(), { agent: agent.name, roomId }, { requester });
      const turns = new Turns(database(), newKey());
      const turn = await turns.claim({ agent: agent.name, roomId }, 4);
      if (typeof turn === "string") throw new Error(turn);
      const ephemeris = [render(functionCall("fc1.1", "set_fact", { key: "shed", value }))];
      await turns.commit(turn, { n: 0, name: "x", result: {}, ephemeris, ends: true });
    };
    const entries = async () => (await database().sql`select 1 from ephemeris where room_id = ${roomId}`).length;

    it("goes with a word from its working files and its calls, also where these are no memories", async () => {
      await turnOf(ann, "golf77");
      await turnOf(newUser(), "hotel88");
      await write("facts.json", `{\n  "shed": "golf77",\n  "language": "Danish"\n}\n`);
      await write("facts.json", `{\n  "language": "Danish",\n  "shed": "golf77"\n}\n`);
      await write("NOW.md", "# Current Goal: open it\n- Next: try golf77\n");
      const events = new Events(database());
      const forgotten = await new Forgetting(database(), events).all({ roomId, agents: [agent.name], words: "golf77" });
      expect(forgotten).toEqual({ messages: 0, memories: 1, knowledge: 0, files: 2, left: [] });
      expect(await left()).toEqual([]);
      expect(await entries()).toBe(1);
      const [now] = await new Files(database()).read([workingFile({ agent: agent.name, roomId }, "NOW.md")]);
      const [facts] = await new Files(database()).read([workingFile({ agent: agent.name, roomId }, "facts.json")]);
      expect(now?.text).toBe(`# Current Goal: open it\n${blank}\n`);
      expect(facts?.text).toBe('{\n  "language": "Danish"\n}\n');
    });

    it("goes with a word from working files that were put aside", async () => {
      const { share, path } = workingFile({ agent: agent.name, roomId }, "facts.json");
      const aside = { share, path: path.replace("facts.json", "facts.7.json") };
      const text = `{\n  "shed": "golf77",\n  "language": "Danish"\n}\n`;
      await new Files(database()).write({ ...aside, contentType: "application/json", text, owner: agent.userId });
      await new Forgetting(database(), new Events(database())).all({ roomId, agents: [agent.name], words: "golf77" });
      expect((await new Files(database()).read([aside]))[0]?.text).toBe('{\n  "language": "Danish"\n}\n');
    });

    it("stays where somebody forgets a word who may only forget what they have said", async () => {
      await turnOf(newUser(), "golf77");
      await write("NOW.md", "# Current Goal: try golf77\n- Next: wait\n");
      await forget("golf77");
      expect(await left()).toHaveLength(1);
      expect(await entries()).toBe(1);
    });
  });
});
