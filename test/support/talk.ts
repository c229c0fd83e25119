import type { Database, Json } from "../../src/adapters/database/connection.ts";
import { nobodyElse } from "../../src/adapters/database/notify.ts";
import { loadAll } from "../../src/app/start/load.ts";
import { systemClock } from "../../src/base/lib/clock.ts";
import type { AgentName, RoomId, UserId } from "../../src/base/lib/ids.ts";
import { silentLog } from "../../src/base/lib/log.ts";
import { type Agent, AgentDirectory } from "../../src/domain/agents/agent.ts";
import { type AgentSettings, parseAgentSettings } from "../../src/domain/agents/settings.ts";
import { loadShipped } from "../../src/domain/agents/shipped.ts";
import type { Servers } from "../../src/domain/servers/servers.ts";
import { settle } from "../../src/domain/tables/effects.ts";
import type { StoredEvent } from "../../src/domain/tables/events.ts";
import type { AnyTool } from "../../src/engine/operations/tool.ts";
import type { LogSummaries } from "../../src/engine/turn/log-summaries.ts";
import { TurnRunner } from "../../src/engine/turn/runner.ts";
import { mindOf } from "./mind.ts";
import { newKey, newRoom, newUser, rightsOf, setMember, settleEvent, storeEvent } from "./rows.ts";
import { type ModelRequest, type Reply, ScriptedModel } from "./scripted-model.ts";
import type { LocalWeb } from "./web.ts";

/** One call of the model, as its provider sees it. */
export interface SentCall {
  readonly roomId: RoomId;
  readonly system: string;
  readonly user: string;
  /** The tools, and all messages in their order. */
  readonly texts: readonly string[];
  readonly request: ModelRequest;
}

/** People who talk with an agent that has everything that comes with the program, without a homeserver. */
export class Talk {
  readonly calls: SentCall[] = [];
  readonly agent: Agent;
  readonly person: UserId;
  readonly #database: Database;
  readonly #model: ScriptedModel;
  readonly #runner: TurnRunner;
  readonly #summaries: LogSummaries;
  #roomId = "" as RoomId;
  #echoed = 0;

  private constructor(
    database: Database,
    agent: Agent,
    person: UserId,
    parts: { model: ScriptedModel; runner: TurnRunner; summaries: LogSummaries },
  ) {
    this.#database = database;
    this.agent = agent;
    this.person = person;
    this.#model = parts.model;
    this.#runner = parts.runner;
    this.#summaries = parts.summaries;
  }

  /** `reply`: what the model answers to each call. */
  static async begin(
    database: Database,
    {
      fields = {},
      reply,
      web,
      servers,
    }: {
      fields?: Partial<AgentSettings>;
      reply: (request: ModelRequest, roomId: RoomId) => Reply;
      web?: LocalWeb | undefined;
      servers?: Servers;
    },
  ): Promise<Talk> {
    const name = newKey().replace("key ", "helper") as AgentName;
    const person = newUser();
    const directory = new AgentDirectory(database, systemClock, silentLog);
    const settings = parseAgentSettings(fields, "test");
    await directory.seed({ name, owner: person, persona: undefined, settings }, "test");
    const agent = (await directory.find(name)) as Agent;
    const model = await new ScriptedModel().start();
    const rights = await rightsOf(database, { test: "operate" });
    const tools = await loadAll<AnyTool>("tools", "tool");
    const mind = mindOf(database, {
      modelUrl: model.url,
      rights,
      tools,
      shipped: await loadShipped(),
      ...(servers && { servers }),
      ...(web && { pages: web.reader, searcher: web.searcher, videos: web.videos }),
    });
    const runner = new TurnRunner(mind, nobodyElse, () => {});
    const talk = new Talk(database, agent, person, { model, runner, summaries: mind.summaries });
    model.on(
      ({ body }) => body.messages.at(-1)?.content.includes("Summarize in at most") === true,
      "They asked, and were answered. ".repeat(40),
    );
    model.onEvery((request) => {
      talk.#record(request);
      const answer = reply(request, talk.#roomId);
      return typeof answer === "function" ? answer(request) : answer;
    });
    return talk;
  }

  /** A room of the agent, the person, and others. */
  async room(...others: readonly UserId[]): Promise<RoomId> {
    const roomId = `${newRoom().replace(":test", "")}QkXyZtRwVbNmLp:test` as RoomId;
    for (const userId of [this.person, this.agent.userId, ...others])
      await setMember(this.#database, roomId, userId, "join");
    return roomId;
  }

  /** Somebody says something, to which nobody wakes. */
  say(
    roomId: RoomId,
    body: string,
    { at, sender = this.person, more = {} }: { at?: Date; sender?: UserId; more?: object } = {},
  ) {
    const content = { msgtype: "m.text", body, ...more } as Json;
    return settleEvent(
      this.#database,
      { roomId, sender, content, ...(at && { sentAt: at }) },
      { shownChars: body.length },
    );
  }

  /** The person says something, and the agent works until it has answered. */
  async ask(roomId: RoomId, body: string, { at, more = {} }: { at?: Date; more?: object } = {}): Promise<StoredEvent> {
    const content = { msgtype: "m.text", body, ...more } as Json;
    const event = await storeEvent(this.#database, { roomId, sender: this.person, content, ...(at && { sentAt: at }) });
    const { eventId, position } = event;
    const wake = {
      agent: this.agent.name,
      roomId,
      reason: "new event",
      key: newKey(),
      eventId,
      position,
      chain: eventId,
    } as const;
    await settle(this.#database, event, { shownChars: body.length, wakes: [{ ...wake, requester: this.person }] });
    this.#roomId = roomId;
    await this.#runner.run({ agent: this.agent.name, roomId });
    await this.#echo(at);
    return event;
  }

  async stop(): Promise<void> {
    await this.#summaries.stop();
    await this.#model.stop();
  }

  /** Gives back what the agent has sent, as the homeserver does. */
  async #echo(at: Date | undefined): Promise<void> {
    const rows = await this.#database.sql<{ id: number; key: string; roomId: RoomId; kind: string; content: Json }[]>`
      select id, key, room_id as "roomId", kind, content from outbox
      where sender = ${this.agent.userId} and id > ${this.#echoed} order by id`;
    for (const { id, key, roomId, kind, content } of rows) {
      this.#echoed = id;
      const type = kind === "reaction" ? "m.reaction" : "m.room.message";
      const fields = { roomId, sender: this.agent.userId, type, content, ...(at && { sentAt: at }) };
      await settleEvent(this.#database, fields, { echoOf: key, ...(kind !== "reaction" && { shownChars: 5 }) });
    }
  }

  #record(request: ModelRequest): void {
    const { messages, tools } = request.body;
    const textOf = (content: unknown): string => (typeof content === "string" ? content : JSON.stringify(content));
    const first = (role: string) => textOf(messages.find((message) => message.role === role)?.content ?? "");
    const texts = [JSON.stringify(tools), ...messages.map(({ role, content }) => `${role}\n${textOf(content)}`)];
    this.calls.push({ roomId: this.#roomId, system: first("system"), user: first("user"), texts, request });
  }
}

/** Characters at the beginning that two texts have in common. */
export const commonStart = (one: string, other: string): number => {
  let at = 0;
  while (at < one.length && at < other.length && one.charCodeAt(at) === other.charCodeAt(at)) at += 1;
  return at;
};
