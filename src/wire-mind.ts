import { BudgetBook } from "./agent/budget.ts";
import { CommandsUnderWay } from "./agent/commands-under-way.ts";
import { definitionCheck } from "./agent/definition.ts";
import { Desks } from "./agent/desk.ts";
import { Guides } from "./agent/guides.ts";
import { MeteredModel } from "./agent/metered-model.ts";
import type { Mind } from "./agent/mind.ts";
import { PrefixMeter } from "./agent/prefix.ts";
import { Schedules } from "./agent/schedules.ts";
import { searchSource } from "./agent/search-source.ts";
import type { Sensor } from "./agent/sensor.ts";
import { SubAgents } from "./agent/subagent.ts";
import { Submodels } from "./agent/submodel.ts";
import type { AnyTool } from "./agent/tool.ts";
import { Toolbox } from "./agent/toolbox.ts";
import { View } from "./agent/view.ts";
import { Interpreter } from "./compute/interpreter.ts";
import { Budgets } from "./database/budgets.ts";
import { Chains } from "./database/chains.ts";
import type { Database } from "./database/connection.ts";
import { Knowledge } from "./database/knowledge.ts";
import { MediaTable } from "./database/media.ts";
import { Operations } from "./database/operations.ts";
import { Renders } from "./database/renders.ts";
import { ScheduleTable } from "./database/schedules.ts";
import { Todos } from "./database/todos.ts";
import { Uploads } from "./database/uploads.ts";
import type { LiveConfig } from "./live-config.ts";
import { liveModel } from "./live-model.ts";
import { loadAll, loadShipped } from "./load.ts";
import type { createMetrics } from "./metrics.ts";
import { openShares } from "./vfs/shares.ts";

type FromOutside = Pick<
  Mind,
  | "botUserId"
  | "clock"
  | "log"
  | "directory"
  | "rights"
  | "rooms"
  | "history"
  | "turns"
  | "onOutbox"
  | "onQueued"
  | "onWoken"
  | "tellOperators"
  | "onThought"
  | "onRead"
  | "openDraft"
  | "showWork"
>;

interface Setting extends FromOutside {
  readonly live: LiveConfig;
  readonly database: Database;
  readonly serverName: string;
  readonly metrics: ReturnType<typeof createMetrics>;
}

/** Makes what every turn works with. */
export async function wireMind({ live, database, serverName, metrics, ...given }: Setting): Promise<Mind> {
  const { botUserId, clock, log, rights } = given;
  const config = live.current;
  const toolbox = new Toolbox(await loadAll<AnyTool>("tools", "tool"));
  const knowledge = new Knowledge(database);
  const todos = new Todos(database);
  const shipped = await loadShipped();
  const files = openShares(database, {
    shipped,
    since: clock.now(),
    quotaMegabytes: config.files.quotaMegabytes,
    check: definitionCheck(toolbox.names),
  });
  const subAgents = new SubAgents(shipped, toolbox, files.stores.system);
  const book = new BudgetBook(new Budgets(database), () => live.current);
  const counted = metrics.measured(liveModel(live, { clock, log, onRetry: metrics.modelRetried }), book, clock);
  const model = new MeteredModel({ model: counted, book, clock, log });
  const desks = new Desks(database, files.stores, new Guides(shipped, serverName, subAgents));
  const view = new View(database, {
    botUserId,
    clock,
    serverName,
    rights,
    defaultModel: () => live.current.model.name,
    desks,
  });
  return {
    ...given,
    files,
    knowledge,
    todos,
    windows: { desks, sources: { search: searchSource } },
    media: new MediaTable(database),
    operations: new Operations(database),
    uploads: new Uploads(database),
    view,
    toolbox,
    underWay: new CommandsUnderWay(),
    subAgents,
    prefixes: new PrefixMeter(),
    renders: new Renders(database),
    model,
    submodels: new Submodels(
      model,
      (agent) => agent.settings.submodel ?? live.current.model.submodel ?? view.modelOf(agent),
    ),
    interpreter: new Interpreter(),
    chains: new Chains(database),
    sensors: await loadAll<Sensor>("sensors", "sensor"),
    schedules: new Schedules({ ...given, table: new ScheduleTable(database) }),
    book,
    onTurnEnded: metrics.turnEnded,
  };
}
