import { Registry } from "prom-client";
import { AgentDirectory } from "./agent/agent.ts";
import { Approvals } from "./agent/approvals.ts";
import { Rights } from "./agent/rights.ts";
import { TurnRunner } from "./agent/runner.ts";
import { TurnQueue } from "./agent/turn-queue.ts";
import { WakeKeeper } from "./agent/wake.ts";
import { wireControl } from "./control.ts";
import type { Database } from "./database/connection.ts";
import { Events } from "./database/events.ts";
import { History } from "./database/history.ts";
import type { Leases } from "./database/leases.ts";
import type { Notifier } from "./database/notify.ts";
import { Outbox } from "./database/outbox.ts";
import { PermissionTable } from "./database/permissions.ts";
import { Rooms } from "./database/rooms.ts";
import { Turns } from "./database/turns.ts";
import { Uploads } from "./database/uploads.ts";
import { health } from "./health.ts";
import type { Clock } from "./lib/clock.ts";
import type { RoomId } from "./lib/ids.ts";
import type { Log } from "./lib/log.ts";
import type { LiveConfig } from "./live-config.ts";
import { createApplicationService } from "./matrix/appservice.ts";
import { agentName } from "./matrix/message.ts";
import { botDeviceOf, type Registration } from "./matrix/registration.ts";
import { HomeserverWatch } from "./matrix/watch.ts";
import { createMetrics } from "./metrics.ts";
import { ControlRoom } from "./rooms/control-room.ts";
import { Delivery } from "./rooms/delivery.ts";
import { GrowingMessage } from "./rooms/drafts.ts";
import { Receipts } from "./rooms/receipts.ts";
import { ThoughtsRooms } from "./rooms/thoughts-room.ts";
import { Typing } from "./rooms/typing.ts";
import { catchUp } from "./routing/catch-up.ts";
import { Doorbell } from "./routing/doorbell.ts";
import { Intake } from "./routing/intake.ts";
import { Judge } from "./routing/judge.ts";
import { MediaKeeper } from "./routing/media-keeper.ts";
import { Reactions } from "./routing/reactions.ts";
import { Reconciler } from "./routing/reconcile.ts";
import { Router } from "./routing/router.ts";
import { Throttle } from "./routing/throttle.ts";
import { wireMind } from "./wire-mind.ts";

const commandPrefix = "!";

/** What everything is made from. */
interface Setting {
  readonly live: LiveConfig;
  readonly registration: Registration;
  readonly database: Database;
  readonly notifier: Notifier;
  readonly leases: Leases;
  readonly log: Log;
  readonly clock: Clock;
  /** Whether people are answered now. */
  readonly ready: () => boolean;
}

/** Makes every part and ties it to the others; nothing runs yet. */
export async function wire({ live, registration, database, notifier, leases, log, clock, ready }: Setting) {
  const config = live.current;
  const { serverName } = config.homeserver;
  const registry = new Registry();
  const metrics = createMetrics(registry);
  const events = new Events(database);
  const rooms = new Rooms(database);
  const outbox = new Outbox(database);
  const history = new History(database);
  const turns = new Turns(database, leases.session);
  const rights = new Rights(new PermissionTable(database), rooms, notifier);
  const directory = new AgentDirectory(database, clock, log, {
    onChanged: (agent) => welcomeSoon(agent),
    onRefused: (refusal, key) => tellOperators(refusal, key),
  });

  const service = await createApplicationService({
    homeserverUrl: config.homeserver.url,
    serverName,
    registration: { ...registration },
    log,
    onTransaction: async (values) => {
      await intake.take(values).catch((error: unknown) => {
        metrics.refused.inc();
        throw error;
      });
      doorbell.listen(values);
      metrics.received.inc(values.length);
    },
    onMisfit: (raw, reason) => intake.takeMisfit(raw, reason),
    userExists: async (userId) => {
      const name = agentName(userId, serverName);
      return userId === service.client.botUserId || (name !== undefined && (await directory.find(name)) !== undefined);
    },
    mount: health({ database, registry, metrics, started: ready, reachable: () => watch.reachable }),
  });
  const { client } = service;
  client.onAnswered = metrics.homeserverAnswered;
  const tellOperators = (text: string, key: string): void => controlRoom.tellOperators(text, key);
  const intake = new Intake(database, log, (fresh) => router.routeFresh(fresh), tellOperators);

  const shared = {
    client,
    directory,
    rooms,
    rights,
    clock,
    log,
    onOutbox: (roomIds: readonly RoomId[]) => delivery.nudge(roomIds),
  };
  const reconciler = new Reconciler({
    ...shared,
    events,
    outbox,
    leases,
    onStored: (roomIds) => router.route(roomIds),
    onFound: (count) => metrics.swept.inc(count),
  });
  const botDevice = botDeviceOf(registration);
  const delivery = new Delivery({
    outbox,
    uploads: new Uploads(database),
    leases,
    client,
    clock,
    log,
    deviceOf: async (userId) => {
      if (userId === client.botUserId) return botDevice;
      const name = agentName(userId, serverName);
      return name && (await directory.recent(name))?.deviceId;
    },
    reconcile: (userId, roomId) => reconciler.sweepUser(userId, roomId),
    tellOperators,
    onWoken: (conversations) => keeper.send(conversations),
    onSettled: (outcome) => metrics.outbox.inc({ outcome }),
  });
  const thoughts = new ThoughtsRooms({ ...shared, history, serverName });
  const controlRoom = new ControlRoom({
    prefix: commandPrefix,
    serverName,
    configured: () => live.current.controlRoom,
    client,
    rights,
    rooms,
    outbox,
    clock,
    log,
    onOutbox: (roomIds) => delivery.nudge(roomIds),
  });
  const typing = new Typing(client, clock);
  const receipts = new Receipts(client, clock);
  const mind = await wireMind({
    botUserId: client.botUserId,
    live,
    database,
    serverName,
    clock,
    log,
    directory,
    rights,
    rooms,
    history,
    turns,
    metrics,
    onOutbox: (roomIds) => delivery.nudge(roomIds),
    onQueued: (queued) => delivery.hand(queued),
    onWoken: (conversations) => keeper.send(conversations),
    tellOperators,
    onThought: (agent) => {
      metrics.steps.inc();
      thoughts.nudge(agent);
    },
    onRead: (agent, roomId, eventId, answered) => receipts.read(agent.userId, roomId, eventId, answered),
    openDraft: (place) => new GrowingMessage({ ...shared, outbox }, place),
    showWork: (agent, roomId) => typing.show(agent, roomId),
  });
  const { book, files, schedules } = mind;
  const approvals = new Approvals(mind);
  const queue = new TurnQueue(log);
  const keeper = new WakeKeeper({
    queue,
    leases,
    notifier,
    turns,
    agents: directory.table,
    renders: mind.renders,
    files,
    book,
    approvals,
    clock,
    log,
  });
  const runner = new TurnRunner(mind, notifier, (conversations) => keeper.send(conversations));
  metrics.running(() => runner.running);
  const { commands, guests, welcomeSoon } = await wireControl({
    live,
    database,
    notifier,
    mind,
    prefix: commandPrefix,
    client,
    outbox,
    runner,
    controlRoom,
    approvals,
    onWaiting: (conversations) => keeper.send(conversations),
    sweep() {
      void reconciler.sweep();
      notifier.tell("sweep");
    },
  });
  notifier.on("sweep", (word) => word && void reconciler.sweep());
  const judge = new Judge({
    events,
    rooms,
    outbox,
    directory,
    rights,
    serverName,
    log,
    botUserId: client.botUserId,
    sensors: mind.sensors,
    commands,
    reactions: new Reactions({ ...mind, events, approvals, serverName, runner }),
    throttle: new Throttle(() => live.current.limits, clock),
    bot: controlRoom,
  });
  const router = new Router({
    database,
    events,
    rooms,
    leases,
    client,
    judge,
    serverName,
    clock,
    log,
    onWoken: (conversations) => keeper.send(conversations),
    onOutbox: (roomIds) => delivery.nudge(roomIds),
    onEcho: (key) => delivery.echoed(key),
    onMedia: () => mediaKeeper.nudge(),
    onMembership: (roomId, userId, membership) => service.remember(roomId, userId, membership),
  });
  const mediaKeeper = new MediaKeeper({ ...mind, client, maxMegabytes: config.media.maxMegabytes });
  const doorbell = new Doorbell(client, notifier, serverName, clock, log);
  const watch = new HomeserverWatch(client, config.homeserver.url, clock, {
    onGone: () => router.hold(),
    onBack: () => {
      log.info("the homeserver is back");
      void catchUp({ reconciler, router, doorbell, clock, reachable: () => watch.reachable });
    },
  });
  return {
    service,
    client,
    botDevice,
    directory,
    rights,
    rooms,
    delivery,
    thoughts,
    book,
    queue,
    runner,
    router,
    underWay: mind.underWay,
    keeper,
    schedules,
    reconciler,
    mediaKeeper,
    doorbell,
    watch,
    controlRoom,
    guests,
  };
}
