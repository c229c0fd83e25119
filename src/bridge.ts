import { Registry } from "prom-client";
import { type Agent, AgentDirectory, agentUserId } from "./agent/agent.ts";
import type { Mind } from "./agent/mind.ts";
import { Rights } from "./agent/rights.ts";
import { TurnRunner } from "./agent/runner.ts";
import type { Sensor } from "./agent/sensor.ts";
import type { AnyTool } from "./agent/tool.ts";
import { Toolbox } from "./agent/toolbox.ts";
import { View } from "./agent/view.ts";
import { WakeKeeper } from "./agent/wake.ts";
import type { Config } from "./config.ts";
import { openDatabase } from "./database/connection.ts";
import { Events } from "./database/events.ts";
import { History } from "./database/history.ts";
import { migrate } from "./database/migrate.ts";
import { Outbox } from "./database/outbox.ts";
import { Queue } from "./database/queue.ts";
import { Renders } from "./database/renders.ts";
import { Rooms } from "./database/rooms.ts";
import { Turns } from "./database/turns.ts";
import { type Clock, systemClock } from "./lib/clock.ts";
import { messageOf } from "./lib/errors.ts";
import { digest, type RoomId } from "./lib/ids.ts";
import type { Log } from "./lib/log.ts";
import { loadAll, loadGuides } from "./load.ts";
import { createApplicationService } from "./matrix/appservice.ts";
import { agentName } from "./matrix/message.ts";
import { untilAnswered, waitForHomeserver } from "./matrix/patience.ts";
import type { Registration } from "./matrix/registration.ts";
import { HomeserverWatch } from "./matrix/watch.ts";
import { createMetrics } from "./metrics.ts";
import { createChatModel } from "./model/chat.ts";
import { Commands } from "./rooms/command.ts";
import { Delivery } from "./rooms/delivery.ts";
import { ThoughtsRooms } from "./rooms/thoughts-room.ts";
import { Typing } from "./rooms/typing.ts";
import { Doorbell } from "./routing/doorbell.ts";
import { Intake } from "./routing/intake.ts";
import { Judge } from "./routing/judge.ts";
import { Reconciler } from "./routing/reconcile.ts";
import { Router } from "./routing/router.ts";

/** Turns that this process works on at the same time. */
const turnsAtOnce = 32;
/** How long turns may go on after the process was asked to end. */
const graceMs = 8_000;
const commandPrefix = "!";

export interface RunningBridge {
  /** Everything that is under way is finished or left to the next start; then nothing runs any more. */
  stop(): Promise<void>;
}

/** Starts everything, in order; resolves when people are answered. Stops again if the signal is aborted meanwhile. */
export async function startBridge(
  config: Config,
  registration: Registration,
  log: Log,
  aborted: AbortSignal,
  clock: Clock = systemClock,
): Promise<RunningBridge> {
  const { serverName } = config.homeserver;
  const stops: (() => void | Promise<void>)[] = [];
  const stop = async (): Promise<void> => {
    for (const one of stops.splice(0).reverse()) await one();
  };
  try {
    const database = await openDatabase(config.database);
    stops.push(() => database.close());
    const applied = await migrate(database);
    if (applied.length > 0) log.info({ applied }, "the database was migrated");
    const queue = new Queue(database, log);
    await queue.start();
    stops.push(() => queue.stop());
    if ("dir" in config.database) await queue.clear();

    const registry = new Registry();
    const metrics = createMetrics(registry);
    const [events, rooms, outbox, history] = [
      new Events(database),
      new Rooms(database),
      new Outbox(database),
      new History(database),
    ];
    const turns = new Turns(database, `${config.bridge.host}:${config.bridge.port}`);
    const rights = new Rights(config.permissions, rooms);
    const directory = new AgentDirectory(database, clock, log, (agent) => {
      directory.table
        .setTimer(agent.name, agent.settings.wakeUpTimerSeconds)
        .catch((error: unknown) => log.warn(messageOf(error)));
    });

    let ready = false;
    const service = await createApplicationService({
      homeserverUrl: config.homeserver.url,
      serverName,
      registration: { ...registration },
      registry,
      log,
      onTransaction: async (values) => {
        await intake.take(values);
        doorbell.listen(values);
        metrics.received.inc(values.length);
      },
      onMisfit: (raw, reason) => intake.takeMisfit(raw, reason),
      userExists: async (userId) => {
        const name = agentName(userId, serverName);
        return (
          userId === service.client.botUserId || (name !== undefined && (await directory.find(name)) !== undefined)
        );
      },
      mount(app) {
        app.get("/health/live", (_request, response) => void response.json({ alive: true }));
        app.get("/health/ready", (_request, response) => void response.status(ready ? 200 : 503).json({ ready }));
        app.get("/metrics", async (_request, response) => {
          response.type(registry.contentType).send(await registry.metrics());
        });
      },
    });
    const { client } = service;
    const intake = new Intake(events, log, (roomIds) => router.route(roomIds));

    const reconciler = new Reconciler({
      client,
      directory,
      events,
      rooms,
      outbox,
      rights,
      clock,
      log,
      onStored: (roomIds) => router.route(roomIds),
      onOutbox: (roomIds) => delivery.nudge(roomIds),
      onFound: (count) => metrics.swept.inc(count),
    });
    const botDevice = `CLEVERNET${digest("bot", registration.as_token)
      .replace(/[^A-Za-z0-9]/g, "")
      .slice(0, 8)
      .toUpperCase()}`;
    const delivery = new Delivery({
      outbox,
      client,
      clock,
      log,
      deviceOf: async (userId) => {
        if (userId === client.botUserId) return botDevice;
        const name = agentName(userId, serverName);
        return name && (await directory.recent(name))?.deviceId;
      },
      reconcile: () => reconciler.sweep(),
      onSettled: (outcome) => metrics.outbox.inc({ outcome }),
    });
    const thoughts = new ThoughtsRooms({
      client,
      directory,
      history,
      rooms,
      rights,
      serverName,
      clock,
      log,
      onOutbox: (roomIds) => delivery.nudge(roomIds),
    });
    const typing = new Typing(client, clock);
    const view = new View(database, {
      clock,
      serverName,
      admins: rights.admins,
      defaultModel: config.model.name,
      guides: await loadGuides(serverName),
    });
    const toolbox = new Toolbox(await loadAll<AnyTool>("tools", "tool"));
    const mind: Mind = {
      clock,
      log,
      directory,
      rights,
      rooms,
      history,
      turns,
      view,
      toolbox,
      renders: new Renders(database),
      model: createChatModel({ baseUrl: config.model.baseUrl, apiKey: config.model.apiKey ?? "", clock, log }),
      onOutbox: (roomIds) => delivery.nudge(roomIds),
      onThought: (agent) => thoughts.nudge(agent),
      showWork: (agent, roomId) => typing.show(agent, roomId),
    };
    const keeper = new WakeKeeper({ queue, turns, agents: directory.table, renders: mind.renders, clock, log });
    const runner = new TurnRunner(mind, (conversations) => keeper.sendSoon(conversations));
    metrics.running(() => runner.running);
    const commands = new Commands({
      prefix: commandPrefix,
      botUserId: client.botUserId,
      rights,
      rooms,
      history,
      turns,
      directory,
      toolbox,
      renders: mind.renders,
      runner,
      clock,
      modelOf: (agent) => view.modelOf(agent),
    });
    const judge = new Judge({
      events,
      rooms,
      outbox,
      directory,
      rights,
      serverName,
      log,
      botUserId: client.botUserId,
      sensors: await loadAll<Sensor>("sensors", "sensor"),
      command: commands.handle,
    });
    const router = new Router({
      database,
      events,
      rooms,
      client,
      judge,
      serverName,
      clock,
      log,
      onWoken: (conversations) => keeper.sendSoon(conversations),
      onOutbox: (roomIds) => delivery.nudge(roomIds),
      onMembership: (roomId, userId, membership) => service.remember(roomId, userId, membership),
    });
    const doorbell = new Doorbell(client, serverName, clock, log);
    const watch = new HomeserverWatch(client, config.homeserver.url, clock, () => {
      log.info("the homeserver is back");
      void doorbell.ring();
      void reconciler.sweep();
    });

    for (const seed of config.agents) await directory.seed(seed, serverName);
    for (const { roomId, userId, membership } of await rooms.ownMemberships())
      service.remember(roomId, userId, membership);
    await service.listen(config.bridge.host, config.bridge.port);
    stops.push(() => service.close());
    await waitForHomeserver(() => client.alive(), config.homeserver.url, clock, log, aborted);
    const insist = <Result>(ask: () => Promise<Result>) => untilAnswered(ask, clock, log, aborted);
    await insist(() => client.register(client.botUserId));
    await insist(() => client.putDevice(client.botUserId, botDevice, "Clevernet"));
    for (const agent of await directory.all()) await insist(() => introduce(agent));

    stops.push(() => delivery.stop());
    await delivery.start();
    stops.push(() => thoughts.stop());
    stops.push(() => runner.close(graceMs));
    await queue.work(turnsAtOnce, (conversation) => runner.run(conversation));
    stops.push(() => router.stop());
    await router.start();
    stops.push(() => keeper.stop());
    await keeper.start();
    stops.push(() => reconciler.stop());
    reconciler.start();
    stops.push(() => watch.stop());
    watch.start();
    stops.push(() => doorbell.stop());
    void doorbell.ring();
    ready = true;
    stops.push(() => {
      ready = false;
    });
    log.info({ agents: config.agents.map(({ name }) => agentUserId(name, serverName)) }, "Clevernet is ready");
    return { stop };

    /** Makes the agent's user, device and profile what they should be; what was done before is not asked again. */
    async function introduce(agent: Agent): Promise<void> {
      if (!agent.registered) {
        await client.register(agent.userId);
        await client.putDevice(agent.userId, agent.deviceId, "Clevernet");
        await directory.table.registered(agent.name);
      }
      const content = { displayName: agent.displayName, avatar: agent.settings.avatar };
      const profile = digest("profile", content.displayName, content.avatar ?? "");
      if (agent.profile === profile) return;
      const draft = {
        key: digest(agent.userId, profile, agent.profile ?? ""),
        roomId: agent.userId as string as RoomId,
        sender: agent.userId,
      };
      await directory.table.tellProfile(agent.name, profile, { ...draft, kind: "profile", content });
    }
  } catch (error) {
    await stop();
    throw error;
  }
}
