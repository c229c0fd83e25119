import type { Database } from "../../adapters/database/connection.ts";
import { Interpreter } from "../../adapters/sandbox/interpreter.ts";
import { definitionCheck } from "../../domain/agents/definition-check.ts";
import { loadShipped } from "../../domain/agents/shipped.ts";
import { BudgetBook } from "../../domain/budget/book.ts";
import { MeteredModel } from "../../domain/budget/metered-model.ts";
import { Submodels } from "../../domain/budget/submodel.ts";
import { Desks } from "../../domain/desk/desk.ts";
import { searchSource } from "../../domain/desk/search-source.ts";
import { openShares } from "../../domain/files/shares.ts";
import { Schedules } from "../../domain/plans/schedules.ts";
import { Budgets } from "../../domain/tables/budgets.ts";
import { Chains } from "../../domain/tables/chains.ts";
import { Knowledge } from "../../domain/tables/knowledge.ts";
import { MediaTable } from "../../domain/tables/media.ts";
import { Operations } from "../../domain/tables/operations.ts";
import { Renders } from "../../domain/tables/renders.ts";
import { ScheduleTable } from "../../domain/tables/schedules.ts";
import { Todos } from "../../domain/tables/todos.ts";
import { Uploads } from "../../domain/tables/uploads.ts";
import type { Sensor } from "../../engine/operations/sensor.ts";
import { SubAgents } from "../../engine/operations/sub-agents.ts";
import type { AnyTool } from "../../engine/operations/tool.ts";
import { Toolbox } from "../../engine/operations/toolbox.ts";
import { Guides } from "../../engine/sight/guides.ts";
import { View } from "../../engine/sight/view.ts";
import { CommandsUnderWay } from "../../engine/turn/commands-under-way.ts";
import type { Mind } from "../../engine/turn/mind.ts";
import { PrefixMeter } from "../../engine/turn/prefix-meter.ts";
import type { LiveConfig } from "../config/live.ts";
import { liveModel } from "./live-model.ts";
import { loadAll } from "./load.ts";
import type { createMetrics } from "./metrics.ts";

type FromOutside = Pick<
  Mind,
  | "botUserId"
  | "clock"
  | "log"
  | "directory"
  | "rights"
  | "rooms"
  | "events"
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
  const desks = new Desks(database, files.stores);
  const guides = new Guides(shipped, serverName, subAgents);
  const view = new View(database, {
    botUserId,
    clock,
    serverName,
    rights,
    defaultModel: () => live.current.model.name,
    desks,
    guides,
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
