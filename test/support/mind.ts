import type { Database } from "../../src/adapters/database/connection.ts";
import { createChatModel } from "../../src/adapters/model/chat.ts";
import { Interpreter } from "../../src/adapters/sandbox/interpreter.ts";
import { sandboxSection, sandboxSettings } from "../../src/app/config/sandbox.ts";
import { wireSandboxes } from "../../src/app/start/wire-sandboxes.ts";
import { systemClock } from "../../src/base/lib/clock.ts";
import { UserError } from "../../src/base/lib/errors.ts";
import type { UserId } from "../../src/base/lib/ids.ts";
import { silentLog } from "../../src/base/lib/log.ts";
import { AgentDirectory } from "../../src/domain/agents/agent.ts";
import { modelFor } from "../../src/domain/agents/models.ts";
import { BudgetBook, type ConfiguredBudgets, type Price } from "../../src/domain/budget/book.ts";
import { MeteredModel } from "../../src/domain/budget/metered-model.ts";
import { Submodels } from "../../src/domain/budget/submodel.ts";
import { Desks } from "../../src/domain/desk/desk.ts";
import { pageSource, type WebPages } from "../../src/domain/desk/page-source.ts";
import { searchSource } from "../../src/domain/desk/search-source.ts";
import { type Videos, videoSource } from "../../src/domain/desk/video-source.ts";
import { type WebSearch, webSearchSource } from "../../src/domain/desk/web-search-source.ts";
import { KnowledgeBase } from "../../src/domain/memory/knowledge-base.ts";
import { MemoryRecall } from "../../src/domain/memory/recall.ts";
import { Schedules } from "../../src/domain/plans/schedules.ts";
import type { Rights } from "../../src/domain/rights/rights.ts";
import { Servers } from "../../src/domain/servers/servers.ts";
import { Budgets } from "../../src/domain/tables/budgets.ts";
import { Chains } from "../../src/domain/tables/chains.ts";
import { Compactions } from "../../src/domain/tables/compaction.ts";
import { Events } from "../../src/domain/tables/events.ts";
import { History } from "../../src/domain/tables/history.ts";
import { MediaTable } from "../../src/domain/tables/media.ts";
import { Operations } from "../../src/domain/tables/operations.ts";
import { Outbox } from "../../src/domain/tables/outbox.ts";
import { Renders } from "../../src/domain/tables/renders.ts";
import { Rooms } from "../../src/domain/tables/rooms.ts";
import { ScheduleTable } from "../../src/domain/tables/schedules.ts";
import { ServerTools } from "../../src/domain/tables/server-tools.ts";
import { Todos } from "../../src/domain/tables/todos.ts";
import { Turns } from "../../src/domain/tables/turns.ts";
import { Uploads } from "../../src/domain/tables/uploads.ts";
import { WebAddresses } from "../../src/domain/tables/web-addresses.ts";
import { sensor as mailbox } from "../../src/edges/sensors/mailbox.ts";
import { ServerToolSource } from "../../src/engine/operations/server-tool.ts";
import { SubAgents } from "../../src/engine/operations/sub-agents.ts";
import type { AnyTool } from "../../src/engine/operations/tool.ts";
import { Toolbox } from "../../src/engine/operations/toolbox.ts";
import { Guides } from "../../src/engine/sight/guides.ts";
import { View } from "../../src/engine/sight/view.ts";
import { CommandsUnderWay } from "../../src/engine/turn/commands-under-way.ts";
import { Compactor } from "../../src/engine/turn/compactor.ts";
import { LogSummaries } from "../../src/engine/turn/log-summaries.ts";
import type { Mind } from "../../src/engine/turn/mind.ts";
import { PrefixMeter } from "../../src/engine/turn/prefix-meter.ts";
import { shares } from "./actor.ts";
import { newKey } from "./rows.ts";

export interface MindOptions {
  readonly modelUrl: string;
  readonly rights: Rights;
  readonly tools: readonly AnyTool[];
  /** Texts by their paths in `system:`. */
  readonly shipped?: ReadonlyMap<string, string>;
  readonly budgets?: ConfiguredBudgets;
  readonly prices?: Readonly<Record<string, Price>>;
  readonly tellOperators?: Mind["tellOperators"];
  readonly log?: Mind["log"];
  readonly pages?: WebPages;
  readonly searcher?: WebSearch;
  readonly videos?: Videos;
  readonly servers?: Servers;
}

/** Sandboxes of servers, of which there are none. */
export const noServerComputers = {
  start: async () => {
    throw new UserError("there are no sandboxes");
  },
  keep: async () => {},
};

/** Servers of tools, of which there are none. */
const noServers = (database: Database): Servers =>
  new Servers({
    settings: [],
    exchange: fetch,
    computers: noServerComputers,
    table: new ServerTools(database),
    clock: systemClock,
    log: silentLog,
    tellOthers: () => {},
    onCalled: () => {},
    onLooked: () => {},
  });

/** The services of computers, of which there are none. */
function noComputers(database: Database) {
  const off = { kind: "off" } as const;
  const config = {
    homeserver: { url: "http://test", serverName: "test" },
    bridge: { instance: "test" },
    web: { allow: [] },
    sandbox: sandboxSettings(sandboxSection.parse(off)),
  };
  return wireSandboxes({
    config,
    database,
    directory: { findRecent: async () => undefined },
    outbox: new Outbox(database),
    onOutbox: () => {},
    clock: systemClock,
    log: silentLog,
  }).services;
}

/** Makes all that the turns of one process work with; the model is `m`. */
export function mindOf(database: Database, options: MindOptions): Mind {
  const [clock, log, rooms] = [systemClock, options.log ?? silentLog, new Rooms(database)];
  const botUserId = "@clevernet:test" as UserId;
  const book = new BudgetBook(new Budgets(database), () => ({ budgets: {}, prices: {}, ...options }));
  const chat = createChatModel({ baseUrl: options.modelUrl, apiKey: "", clock, log });
  const model = new MeteredModel({ model: chat, book, clock, log });
  const files = shares(database);
  const servers = options.servers ?? noServers(database);
  const isUsable = ({ name, set }: AnyTool) => set !== "mcp" || servers.isOffered(name);
  const toolbox = new Toolbox(options.tools, isUsable, new ServerToolSource(servers));
  const subAgents = new SubAgents(options.shipped ?? new Map(), toolbox, files.stores.system);
  const desks = new Desks(database, files);
  const choiceFor: Mind["choiceFor"] = (agent, kind = "think") => modelFor(agent, kind, { name: "m", models: {} });
  const events = new Events(database);
  const todos = new Todos(database);
  const directory = new AgentDirectory(database, clock, log);
  const schedules = new Schedules({
    table: new ScheduleTable(database),
    clock,
    log,
    rights: options.rights,
    onWoken: () => {},
    onOutbox: () => {},
    tellOperators: options.tellOperators ?? (() => {}),
  });
  const submodels = new Submodels(model, () => ({ model: "fast", temperature: 0 }));
  const compactor = new Compactor({ submodels, compactions: new Compactions(database), clock, log });
  const operations = new Operations(database);
  const memory = new MemoryRecall(database, {
    botUserId,
    rights: options.rights,
    embedder: () => undefined,
    ranking: () => "product",
  });
  const guides = new Guides(options.shipped ?? new Map(), "test", subAgents);
  return {
    clock,
    log,
    directory,
    forTools: {
      addresses: new WebAddresses(database),
      agents: directory,
      events,
      interpreter: new Interpreter(),
      knowledge: new KnowledgeBase(database, () => undefined),
      memory,
      onLogGrown: (...grown) => compactor.consider(...grown),
      onProgress: () => {},
      operations,
      pages: options.pages,
      rooms,
      ...noComputers(database),
      schedules,
      servers,
      todos,
      uploads: new Uploads(database),
    },
    rights: options.rights,
    botUserId,
    prefixes: new PrefixMeter(),
    rooms,
    history: new History(database),
    files,
    windows: {
      desks,
      sources: {
        search: searchSource,
        page: pageSource(options.pages, clock),
        web: webSearchSource(options.searcher, clock),
        video: videoSource(options.videos, clock),
      },
    },
    todos,
    turns: new Turns(database, newKey()),
    renders: new Renders(database),
    view: new View(database, {
      botUserId,
      clock,
      serverName: "test",
      rights: options.rights,
      modelOf: (agent) => choiceFor(agent).model,
      desks,
      guides,
      prefix: "!",
    }),
    toolbox,
    underWay: new CommandsUnderWay(),
    subAgents,
    model,
    submodels,
    compactor,
    summaries: new LogSummaries({ submodels, database, clock, log }),
    choiceFor,
    chains: new Chains(database),
    sensors: [mailbox],
    book,
    readMissed: async () => {},
    onOutbox: () => {},
    onQueued: () => {},
    onWoken: () => {},
    tellOperators: options.tellOperators ?? (() => {}),
    onThought: () => {},
    onRead: () => {},
    onTurnEnded: () => {},
    media: new MediaTable(database),
    operations,
    openDraft: () => ({ write() {}, end: async () => [], withdraw: async () => {} }),
    showWork: () => () => {},
  };
}
