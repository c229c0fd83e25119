import { AgentDirectory } from "../../src/agent/agent.ts";
import { BudgetBook, type ConfiguredBudgets, type Price } from "../../src/agent/budget.ts";
import { CommandsUnderWay } from "../../src/agent/commands-under-way.ts";
import { Desks } from "../../src/agent/desk.ts";
import { Guides } from "../../src/agent/guides.ts";
import { MeteredModel } from "../../src/agent/metered-model.ts";
import type { Mind } from "../../src/agent/mind.ts";
import { PrefixMeter } from "../../src/agent/prefix.ts";
import type { Rights } from "../../src/agent/rights.ts";
import { Schedules } from "../../src/agent/schedules.ts";
import { searchSource } from "../../src/agent/search-source.ts";
import { SubAgents } from "../../src/agent/subagent.ts";
import { Submodels } from "../../src/agent/submodel.ts";
import type { AnyTool } from "../../src/agent/tool.ts";
import { Toolbox } from "../../src/agent/toolbox.ts";
import { View } from "../../src/agent/view.ts";
import { Interpreter } from "../../src/compute/interpreter.ts";
import { Budgets } from "../../src/database/budgets.ts";
import { Chains } from "../../src/database/chains.ts";
import type { Database } from "../../src/database/connection.ts";
import { History } from "../../src/database/history.ts";
import { Knowledge } from "../../src/database/knowledge.ts";
import { MediaTable } from "../../src/database/media.ts";
import { Operations } from "../../src/database/operations.ts";
import { Renders } from "../../src/database/renders.ts";
import { Rooms } from "../../src/database/rooms.ts";
import { ScheduleTable } from "../../src/database/schedules.ts";
import { Todos } from "../../src/database/todos.ts";
import { Turns } from "../../src/database/turns.ts";
import { Uploads } from "../../src/database/uploads.ts";
import { systemClock } from "../../src/lib/clock.ts";
import type { UserId } from "../../src/lib/ids.ts";
import { silentLog } from "../../src/lib/log.ts";
import { createChatModel } from "../../src/model/chat.ts";
import { sensor as mailbox } from "../../src/sensors/mailbox.ts";
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
}

/** What the turns of one process work with; the model is `m`. */
export function mindOf(database: Database, options: MindOptions): Mind {
  const [clock, log, rooms] = [systemClock, options.log ?? silentLog, new Rooms(database)];
  const botUserId = "@clevernet:test" as UserId;
  const book = new BudgetBook(new Budgets(database), () => ({ budgets: {}, prices: {}, ...options }));
  const chat = createChatModel({ baseUrl: options.modelUrl, apiKey: "", clock, log });
  const model = new MeteredModel({ model: chat, book, clock, log });
  const files = shares(database);
  const toolbox = new Toolbox(options.tools);
  const subAgents = new SubAgents(options.shipped ?? new Map(), toolbox, files.stores.system);
  const desks = new Desks(database, files.stores, new Guides(new Map(), "test", subAgents));
  return {
    clock,
    log,
    directory: new AgentDirectory(database, clock, log),
    rights: options.rights,
    botUserId,
    prefixes: new PrefixMeter(),
    rooms,
    history: new History(database),
    files,
    windows: { desks, sources: { search: searchSource } },
    knowledge: new Knowledge(database),
    todos: new Todos(database),
    turns: new Turns(database, newKey()),
    renders: new Renders(database),
    view: new View(database, {
      botUserId,
      clock,
      serverName: "test",
      rights: options.rights,
      defaultModel: () => "m",
      desks,
    }),
    toolbox,
    underWay: new CommandsUnderWay(),
    subAgents,
    model,
    submodels: new Submodels(model, () => "fast"),
    interpreter: new Interpreter(),
    chains: new Chains(database),
    sensors: [mailbox],
    schedules: new Schedules({
      table: new ScheduleTable(database),
      clock,
      log,
      rights: options.rights,
      onWoken: () => {},
      onOutbox: () => {},
      tellOperators: options.tellOperators ?? (() => {}),
    }),
    book,
    onOutbox: () => {},
    onQueued: () => {},
    onWoken: () => {},
    tellOperators: options.tellOperators ?? (() => {}),
    onThought: () => {},
    onRead: () => {},
    onTurnEnded: () => {},
    media: new MediaTable(database),
    operations: new Operations(database),
    uploads: new Uploads(database),
    openDraft: () => ({ write() {}, end: async () => [], withdraw: async () => {} }),
    showWork: () => () => {},
  };
}
