import type { Database } from "../../adapters/database/connection.ts";
import type { Notifier } from "../../adapters/database/notify.ts";
import { Interpreter } from "../../adapters/sandbox/interpreter.ts";
import { ScrapingFish } from "../../adapters/web/scraping-fish.ts";
import { WebSearcher } from "../../adapters/web/search.ts";
import { WayOut } from "../../adapters/web/way-out.ts";
import { WebReader } from "../../adapters/web/web-reader.ts";
import { YouTube } from "../../adapters/web/youtube.ts";
import type { AgentDirectory } from "../../domain/agents/agent.ts";
import { definitionCheck } from "../../domain/agents/definition-check.ts";
import { modelFor } from "../../domain/agents/models.ts";
import { loadShipped } from "../../domain/agents/shipped.ts";
import { BudgetBook } from "../../domain/budget/book.ts";
import { MeteredModel } from "../../domain/budget/metered-model.ts";
import { Submodels } from "../../domain/budget/submodel.ts";
import { Desks } from "../../domain/desk/desk.ts";
import { pageSource } from "../../domain/desk/page-source.ts";
import { searchSource } from "../../domain/desk/search-source.ts";
import { videoSource } from "../../domain/desk/video-source.ts";
import { webSearchSource } from "../../domain/desk/web-search-source.ts";
import { openShares } from "../../domain/files/shares.ts";
import { Embeddings } from "../../domain/memory/embeddings.ts";
import { KnowledgeBase } from "../../domain/memory/knowledge-base.ts";
import { MemoryRecall } from "../../domain/memory/recall.ts";
import { Schedules } from "../../domain/plans/schedules.ts";
import { Budgets } from "../../domain/tables/budgets.ts";
import { Chains } from "../../domain/tables/chains.ts";
import { Compactions } from "../../domain/tables/compaction.ts";
import type { Events } from "../../domain/tables/events.ts";
import { MediaTable } from "../../domain/tables/media.ts";
import { Operations } from "../../domain/tables/operations.ts";
import type { Outbox } from "../../domain/tables/outbox.ts";
import { Renders } from "../../domain/tables/renders.ts";
import type { Rooms } from "../../domain/tables/rooms.ts";
import { ScheduleTable } from "../../domain/tables/schedules.ts";
import { Todos } from "../../domain/tables/todos.ts";
import { Uploads } from "../../domain/tables/uploads.ts";
import { WebAddresses } from "../../domain/tables/web-addresses.ts";
import type { Sensor } from "../../engine/operations/sensor.ts";
import { ServerToolSource } from "../../engine/operations/server-tool.ts";
import { SubAgents } from "../../engine/operations/sub-agents.ts";
import type { AnyTool, SharedServices } from "../../engine/operations/tool.ts";
import { Toolbox } from "../../engine/operations/toolbox.ts";
import { unwrittenTexts } from "../../engine/operations/unwritten-texts.ts";
import { Guides } from "../../engine/sight/guides.ts";
import { View } from "../../engine/sight/view.ts";
import { CommandsUnderWay } from "../../engine/turn/commands-under-way.ts";
import { Compactor } from "../../engine/turn/compactor.ts";
import { LogSummaries } from "../../engine/turn/log-summaries.ts";
import type { Mind } from "../../engine/turn/mind.ts";
import { PrefixMeter } from "../../engine/turn/prefix-meter.ts";
import { type Config, modelsOf } from "../config/config.ts";
import type { LiveConfig } from "../config/live.ts";
import { describeRefusedOption, liveModel } from "./live-model.ts";
import { loadAll } from "./load.ts";
import type { createMetrics } from "./metrics.ts";
import { wireSandboxes } from "./wire-sandboxes.ts";
import { wireServers } from "./wire-servers.ts";

interface Setting
  extends Pick<Mind, "botUserId" | "clock" | "log" | "onOutbox" | "onWoken" | "rights" | "tellOperators"> {
  readonly live: LiveConfig;
  readonly database: Database;
  readonly notifier: Notifier;
  readonly serverName: string;
  /** Before the words of a command. */
  readonly prefix: string;
  readonly metrics: ReturnType<typeof createMetrics>;
  readonly directory: AgentDirectory;
  readonly events: Events;
  readonly rooms: Rooms;
  readonly outbox: Outbox;
  readonly thoughts: { readonly show: SharedServices["onProgress"] };
}

/** Makes the services that turns think and act with. */
export async function wireMind(setting: Setting) {
  const { live, database, serverName, prefix, metrics, botUserId, clock, log, rights } = setting;
  const config = live.current;
  const { renderer, sandboxFiles, sandboxKeeper, services: computers } = wireSandboxes({ ...setting, config });
  const { sandboxes } = computers;
  const withheld = withheldBy(config);
  const servers = wireServers({ ...setting, config, sandboxes });
  const isUsable = ({ name, set }: AnyTool): boolean =>
    set === "mcp" ? servers.isOffered(name) : !withheld.includes(name) && (set !== "sandbox" || sandboxes.isOffered);
  const source = new ServerToolSource(servers);
  const toolbox = new Toolbox(await loadAll<AnyTool>("tools", "tool"), isUsable, source);
  const todos = new Todos(database);
  const shipped = await loadShipped();
  const files = openShares(database, {
    shipped,
    since: clock.now(),
    quotaMegabytes: config.files.quotaMegabytes,
    check: definitionCheck(toolbox.names),
    unwritten: unwrittenTexts(toolbox, setting.directory),
    sandboxFiles,
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
  const desks = new Desks(database, files);
  const guides = new Guides(shipped, serverName, subAgents);
  const choiceFor: Mind["choiceFor"] = (agent, kind = "think") => modelFor(agent, kind, modelsOf(live.current));
  const { embeddings: settings, bridge, web } = config;
  const wayOut = new WayOut(web);
  const fetcher = web.scrapingFish ? new ScrapingFish(web.scrapingFish, wayOut) : wayOut;
  // The service has a browser of its own.
  const pages = web.hasPages ? new WebReader(fetcher, web.scrapingFish ? undefined : renderer) : undefined;
  const searcher = web.search && new WebSearcher(web.search);
  const videos = web.youtubeVersion === undefined ? undefined : new YouTube(web.youtubeVersion);
  const embeddings = new Embeddings({ settings, instance: bridge.instance, clock, log });
  metrics.embedding(() => embeddings.isLoaded);
  const memory = new MemoryRecall(database, {
    botUserId,
    rights,
    embedder: () => embeddings.forQuestions,
    ranking: () => live.current.memory.ranking,
  });
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
  const submodels = new Submodels(model, (agent) => modelFor(agent, "read", modelsOf(live.current)));
  const compactor = new Compactor({ submodels, compactions: new Compactions(database), clock, log });
  const forTools: SharedServices = {
    ...computers,
    addresses: new WebAddresses(database),
    agents: setting.directory,
    events: setting.events,
    interpreter: new Interpreter(),
    knowledge: new KnowledgeBase(database, () => embeddings.forQuestions),
    memory,
    onLogGrown: (...grown) => compactor.consider(...grown),
    onProgress: (...progress) => setting.thoughts.show(...progress),
    operations,
    pages,
    rooms: setting.rooms,
    schedules,
    servers,
    todos,
    uploads: new Uploads(database),
  };
  return {
    computers,
    outside: { sandboxes: sandboxKeeper, servers },
    embeddings,
    forTools,
    files,
    todos,
    schedules,
    windows: {
      desks,
      sources: {
        search: searchSource,
        page: pageSource(pages, clock),
        web: webSearchSource(searcher, clock),
        video: videoSource(videos, clock),
      },
    },
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
    submodels,
    compactor,
    summaries: new LogSummaries({ submodels, database, clock, log }),
    chains: new Chains(database),
    sensors: await loadAll<Sensor>("sensors", "sensor"),
    book,
  };
}

/** Tools that need something that is not configured. */
const withheldBy = ({ web }: Config): string[] => [
  ...(web.hasPages ? [] : ["BrowseWeb"]),
  ...(web.search ? [] : ["WebSearch"]),
  ...(web.youtubeVersion === undefined ? ["YouTube"] : []),
];
