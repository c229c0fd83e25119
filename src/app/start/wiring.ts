import { Registry } from "prom-client";
import type { Database } from "../../adapters/database/connection.ts";
import type { Leases } from "../../adapters/database/leases.ts";
import type { Notifier } from "../../adapters/database/notify.ts";
import { createApplicationService } from "../../adapters/matrix/appservice.ts";
import { agentName } from "../../adapters/matrix/message.ts";
import { botDeviceOf, type Registration } from "../../adapters/matrix/registration.ts";
import { HomeserverWatch } from "../../adapters/matrix/watch.ts";
import type { Clock } from "../../base/lib/clock.ts";
import type { RoomId } from "../../base/lib/ids.ts";
import type { Log } from "../../base/lib/log.ts";
import { AgentDirectory } from "../../domain/agents/agent.ts";
import { Rights } from "../../domain/rights/rights.ts";
import { Events } from "../../domain/tables/events.ts";
import { History } from "../../domain/tables/history.ts";
import { JoinRules } from "../../domain/tables/join-rules.ts";
import { Outbox } from "../../domain/tables/outbox.ts";
import { PermissionTable } from "../../domain/tables/permissions.ts";
import { Pings } from "../../domain/tables/pings.ts";
import { RedactionMarks } from "../../domain/tables/redaction-marks.ts";
import { Rooms } from "../../domain/tables/rooms.ts";
import { Turns } from "../../domain/tables/turns.ts";
import { Uploads } from "../../domain/tables/uploads.ts";
import { WrittenFiles } from "../../domain/tables/written-files.ts";
import { Delivery } from "../../edges/delivery/delivery.ts";
import { GrowingMessage } from "../../edges/delivery/drafts.ts";
import { Receipts } from "../../edges/delivery/receipts.ts";
import { ThoughtsRooms } from "../../edges/delivery/thoughts-room.ts";
import { Typing } from "../../edges/delivery/typing.ts";
import { catchUp } from "../../edges/routing/catch-up.ts";
import { Doorbell } from "../../edges/routing/doorbell.ts";
import { Intake } from "../../edges/routing/intake.ts";
import { Judge } from "../../edges/routing/judge.ts";
import { MediaKeeper } from "../../edges/routing/media-keeper.ts";
import { Reactions } from "../../edges/routing/reactions.ts";
import { Reconciler } from "../../edges/routing/reconcile.ts";
import { RedactionKeeper } from "../../edges/routing/redaction-keeper.ts";
import { Router } from "../../edges/routing/router.ts";
import { SoleBridge } from "../../edges/routing/sole-bridge.ts";
import { Throttle } from "../../edges/routing/throttle.ts";
import { ControlRoom } from "../../engine/control/control-room.ts";
import { Approvals } from "../../engine/operations/approvals.ts";
import { WakeKeeper } from "../../engine/turn/keeper.ts";
import { TurnQueue } from "../../engine/turn/queue.ts";
import { TurnRunner } from "../../engine/turn/runner.ts";
import type { LiveConfig } from "../config/live.ts";
import { health } from "./health.ts";
import { createMetrics } from "./metrics.ts";
import { wireControl } from "./wire-control.ts";
import { wireMind } from "./wire-mind.ts";

const commandPrefix = "!";

/** Parts from which everything is made. */
interface Setting {
  readonly live: LiveConfig;
  readonly registration: Registration;
  readonly database: Database;
  readonly notifier: Notifier;
  readonly leases: Leases;
  readonly log: Log;
  readonly clock: Clock;
  /** True while people are answered. */
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
    onPing: (id) => sole.hear(id),
    onMisfit: (raw, reason) => intake.takeMisfit(raw, reason),
    userExists: async (userId) => {
      const name = agentName(userId, serverName);
      return userId === service.client.botUserId || (name !== undefined && (await directory.find(name)) !== undefined);
    },
    mount: health({ database, registry, metrics, started: ready, reachable: () => watch.reachable, sole: () => sole }),
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
  const pings = new Pings(database);
  const sole = new SoleBridge({ ...shared, pings, tellOperators, onAllowed: () => delivery.resume() });
  const reconciler = new Reconciler({
    ...shared,
    events,
    joinRules: new JoinRules(database),
    outbox,
    leases,
    maySweep: () => sole.ask(),
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
    maySend: () => sole.mayWork,
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
    events,
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
    approvals,
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
    onRedacted: () => redactionKeeper.nudge(),
    onMembership: (roomId, userId, membership) => service.remember(roomId, userId, membership),
    tellOperators,
    onGuest: () => guests.follow(),
  });
  const mediaKeeper = new MediaKeeper({ ...mind, client, maxMegabytes: config.media.maxMegabytes });
  const [marks, writtenFiles] = [new RedactionMarks(database), new WrittenFiles(database)];
  const redactionKeeper = new RedactionKeeper({ ...shared, events, outbox, marks, files: writtenFiles });
  const doorbell = new Doorbell(client, sole, notifier, serverName, clock, log);
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
    redactionKeeper,
    doorbell,
    sole,
    watch,
    controlRoom,
    guests,
  };
}
