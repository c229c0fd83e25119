import type { Database } from "../../adapters/database/connection.ts";
import { Interpreter } from "../../adapters/sandbox/interpreter.ts";
import type { AgentDirectory } from "../../domain/agents/agent.ts";
import { definitionCheck } from "../../domain/agents/definition-check.ts";
import { modelFor } from "../../domain/agents/models.ts";
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
import type { Events } from "../../domain/tables/events.ts";
import { Knowledge } from "../../domain/tables/knowledge.ts";
import { MediaTable } from "../../domain/tables/media.ts";
import { Operations } from "../../domain/tables/operations.ts";
import { Renders } from "../../domain/tables/renders.ts";
import type { Rooms } from "../../domain/tables/rooms.ts";
import { ScheduleTable } from "../../domain/tables/schedules.ts";
import { Todos } from "../../domain/tables/todos.ts";
import { Uploads } from "../../domain/tables/uploads.ts";
import type { Sensor } from "../../engine/operations/sensor.ts";
import { SubAgents } from "../../engine/operations/sub-agents.ts";
import type { AnyTool, SharedServices } from "../../engine/operations/tool.ts";
import { Toolbox } from "../../engine/operations/toolbox.ts";
import { Guides } from "../../engine/sight/guides.ts";
import { View } from "../../engine/sight/view.ts";
import { CommandsUnderWay } from "../../engine/turn/commands-under-way.ts";
import type { Mind } from "../../engine/turn/mind.ts";
import { PrefixMeter } from "../../engine/turn/prefix-meter.ts";
import { modelsOf } from "../config/config.ts";
import type { LiveConfig } from "../config/live.ts";
import { describeRefusedOption, liveModel } from "./live-model.ts";
import { loadAll } from "./load.ts";
import type { createMetrics } from "./metrics.ts";

interface Setting
  extends Pick<Mind, "botUserId" | "clock" | "log" | "onOutbox" | "onWoken" | "rights" | "tellOperators"> {
  readonly live: LiveConfig;
  readonly database: Database;
  readonly serverName: string;
  /** Before the words of a command. */
  readonly prefix: string;
  readonly metrics: ReturnType<typeof createMetrics>;
  readonly directory: AgentDirectory;
  readonly events: Events;
  readonly rooms: Rooms;
}

/** Makes the services that turns think and act with. */
export async function wireMind(setting: Setting) {
  const { live, database, serverName, prefix, metrics, botUserId, clock, log, rights } = setting;
  const config = live.current;
  const toolbox = new Toolbox(await loadAll<AnyTool>("tools", "tool"));
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
  const chat = liveModel(live, {
    clock,
    log,
    onRetry: metrics.modelRetried,
    onRefused: (request, option, words) => setting.tellOperators(...describeRefusedOption(request, option, words)),
  });
  const counted = metrics.measured(chat, book, clock);
  const model = new MeteredModel({ model: counted, book, clock, log });
  const desks = new Desks(database, files.stores);
  const guides = new Guides(shipped, serverName, subAgents);
  const choiceFor: Mind["choiceFor"] = (agent, kind = "think") => modelFor(agent, kind, modelsOf(live.current));
  const view = new View(database, {
    botUserId,
    clock,
    serverName,
    rights,
    modelOf: (agent) => choiceFor(agent).model,
    desks,
    guides,
    prefix,
  });
  const schedules = new Schedules({ ...setting, table: new ScheduleTable(database) });
  const operations = new Operations(database);
  const forTools: SharedServices = {
    agents: setting.directory,
    events: setting.events,
    interpreter: new Interpreter(),
    knowledge: new Knowledge(database),
    operations,
    rooms: setting.rooms,
    schedules,
    todos,
    uploads: new Uploads(database),
  };
  return {
    forTools,
    files,
    todos,
    schedules,
    windows: { desks, sources: { search: searchSource } },
    media: new MediaTable(database),
    operations,
    view,
    toolbox,
    underWay: new CommandsUnderWay(),
    subAgents,
    prefixes: new PrefixMeter(),
    renders: new Renders(database),
    model,
    choiceFor,
    submodels: new Submodels(model, (agent) => modelFor(agent, "read", modelsOf(live.current))),
    chains: new Chains(database),
    sensors: await loadAll<Sensor>("sensors", "sensor"),
    book,
  };
}
