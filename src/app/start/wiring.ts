import { Registry } from "prom-client";
import type { Database } from "../../adapters/database/connection.ts";
import type { Leases } from "../../adapters/database/leases.ts";
import type { Notifier } from "../../adapters/database/notify.ts";
import { createApplicationService } from "../../adapters/matrix/appservice.ts";
import { agentName } from "../../adapters/matrix/message.ts";
import type { Registration } from "../../adapters/matrix/registration.ts";
import { HomeserverWatch } from "../../adapters/matrix/watch.ts";
import type { Clock } from "../../base/lib/clock.ts";
import type { Log } from "../../base/lib/log.ts";
import { AgentDirectory } from "../../domain/agents/agent.ts";
import { Rights } from "../../domain/rights/rights.ts";
import { Events } from "../../domain/tables/events.ts";
import { History } from "../../domain/tables/history.ts";
import { JoinRules } from "../../domain/tables/join-rules.ts";
import { Outbox } from "../../domain/tables/outbox.ts";
import { PermissionTable } from "../../domain/tables/permissions.ts";
import { Pings } from "../../domain/tables/pings.ts";
import { Rooms } from "../../domain/tables/rooms.ts";
import { Turns } from "../../domain/tables/turns.ts";
import { Uploads } from "../../domain/tables/uploads.ts";
import { catchUp } from "../../edges/routing/catch-up.ts";
import { Doorbell } from "../../edges/routing/doorbell.ts";
import { Intake } from "../../edges/routing/intake.ts";
import { Judge } from "../../edges/routing/judge.ts";
import { Reactions } from "../../edges/routing/reactions.ts";
import { Reconciler } from "../../edges/routing/reconcile.ts";
import { Router } from "../../edges/routing/router.ts";
import { SoleBridge } from "../../edges/routing/sole-bridge.ts";
import { Throttle } from "../../edges/routing/throttle.ts";
import { ControlRoom } from "../../engine/control/control-room.ts";
import { Approvals } from "../../engine/operations/approvals.ts";
import { WakeKeeper } from "../../engine/turn/keeper.ts";
import type { Mind } from "../../engine/turn/mind.ts";
import { TurnQueue } from "../../engine/turn/queue.ts";
import { TurnRunner } from "../../engine/turn/runner.ts";
import type { LiveConfig } from "../config/live.ts";
import { openChannels, tie } from "./channels.ts";
import { health } from "./health.ts";
import { createMetrics } from "./metrics.ts";
import { wireControl } from "./wire-control.ts";
import { wireDelivery } from "./wire-delivery.ts";
import { wireEncryption } from "./wire-encryption.ts";
import { wireKeepers } from "./wire-keepers.ts";
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

/** Makes every part, in an order in which each finds those that it needs, and ties the channels; nothing runs yet. */
export async function wire({ live, registration, database, notifier, leases, log, clock, ready }: Setting) {
  const config = live.current;
  const { serverName } = config.homeserver;
  const registry = new Registry();
  const metrics = createMetrics(registry);
  const channels = openChannels();
  const { tellOperators } = channels;
  const events = new Events(database);
  const rooms = new Rooms(database);
  const outbox = new Outbox(database);
  const uploads = new Uploads(database);
  const history = new History(database);
  const turns = new Turns(database, leases.session);
  const rights = new Rights(new PermissionTable(database), rooms, notifier);
  const directory = new AgentDirectory(database, clock, log, {
    onChanged: channels.onChanged,
    onRefused: tellOperators,
  });

  const service = await createApplicationService({
    homeserverUrl: config.homeserver.url,
    serverName,
    registration: { ...registration },
    log,
    onTransaction: channels.onTransaction,
    onPing: channels.onPing,
    onMisfit: channels.onMisfit,
    userExists: async (userId) => {
      const name = agentName(userId, serverName);
      return userId === service.client.botUserId || (name !== undefined && (await directory.find(name)) !== undefined);
    },
    mount: health({
      database,
      registry,
      metrics,
      started: ready,
      reachable: channels.isReachable,
      sole: channels.sole,
    }),
  });
  const { client } = service;
  client.onAnswered = metrics.homeserverAnswered;
  const intake = new Intake(database, log, channels.onFresh, tellOperators);

  const shared = {
    ...channels,
    client,
    directory,
    rooms,
    rights,
    outbox,
    leases,
    serverName,
    clock,
    log,
    prefix: commandPrefix,
  };
  const sole = new SoleBridge({ ...shared, pings: new Pings(database) });
  const reconciler = new Reconciler({
    ...shared,
    events,
    joinRules: new JoinRules(database),
    maySweep: () => sole.ask(),
    onFound: (count) => metrics.swept.inc(count),
  });
  const encryption = wireEncryption({
    ...shared,
    ...metrics.encryption,
    maxOpenDevices: config.encryption.maxOpenDevices,
    database,
    events,
    notifier,
  });
  const { botDevice, delivery, openDraft, openProgress, receipts, thoughts, typing } = wireDelivery({
    ...shared,
    registration,
    uploads,
    history,
    sealing: encryption.sealing,
    reconcile: (userId, roomId) => reconciler.sweepUser(userId, roomId),
    maySend: () => sole.mayWork,
    onSettled: (outcome) => metrics.outbox.inc({ outcome }),
  });
  const controlRoom = new ControlRoom({ ...shared, configured: () => live.current.controlRoom });
  const mental = { ...shared, live, database, notifier, metrics, botUserId: client.botUserId, events, thoughts };
  const { schedules, embeddings, computers, outside, ...own } = await wireMind(mental);
  const mind: Mind = {
    ...shared,
    ...own,
    botUserId: client.botUserId,
    history,
    turns,
    readMissed: (userId, roomId) => reconciler.readMissed(userId, roomId),
    onQueued: (queued) => delivery.hand(queued),
    onThought(agent) {
      metrics.steps.inc();
      keepers.embedding.nudge();
      thoughts.nudge(agent);
    },
    onTurnEnded: metrics.turnEnded,
    onRead: (agent, roomId, eventId, answered) => receipts.read(agent.userId, roomId, eventId, answered),
    openDraft,
    showWork: (agent, roomId) => typing.show(agent, roomId),
  };
  const { book, files } = mind;
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
  const runner = new TurnRunner(mind, notifier, channels.onWoken);
  metrics.running(() => runner.running);
  metrics.encryption.open(() => encryption.machines.size);
  const commanded = { computers, servers: outside.servers, devices: encryption.commanded, embeddings, openProgress };
  const { commands, guests, welcomeSoon } = await wireControl({
    live,
    database,
    notifier,
    mind,
    prefix: commandPrefix,
    client,
    events,
    outbox,
    runner,
    controlRoom,
    approvals,
    onWelcome: () => encryption.devices.nudge(),
    onErased: (userId) => encryption.machines.forget(userId),
    ...commanded,
    sweep() {
      void reconciler.sweep();
      notifier.tell("sweep");
    },
  });
  notifier.on("sweep", (word) => word && void reconciler.sweep());
  const judge = new Judge({
    ...shared,
    events,
    botUserId: client.botUserId,
    readMissed: mind.readMissed,
    sensors: mind.sensors,
    commands,
    approvals,
    reactions: new Reactions({ ...mind, events, approvals, serverName, runner }),
    throttle: new Throttle(() => live.current.limits, clock),
    bot: controlRoom,
  });
  const onEmbedded = (count: number): void => metrics.embedded.inc(count);
  const { media, memory } = config;
  const kept = { ...media, ...memory, database, leases, events, judge, outbox, uploads, embeddings, onEmbedded };
  const keepers = wireKeepers({ ...mind, ...kept, approvals, client });
  const router = new Router({
    ...shared,
    database,
    events,
    judge,
    past: keepers.past,
    unsealing: encryption.unsealing,
    onEcho: (key) => delivery.takeEcho(key),
    onQueued: mind.onQueued,
    onSealed: () => encryption.sealedKeeper.nudge(),
    onMedia: () => keepers.media.nudge(),
    onRedacted: () => keepers.redactions.nudge(),
    onMembership: (roomId, userId, membership) => service.remember(roomId, userId, membership),
    onGuest: () => guests.follow(),
  });
  const doorbell = new Doorbell({ ...shared, notifier, sole, onHeldBack: () => reconciler.sweepOnceMore() });
  const watch = new HomeserverWatch(client, config.homeserver.url, clock, {
    onGone: () => {
      router.hold();
      encryption.sealing.doubt();
    },
    onBack: () => {
      log.info("the homeserver is back");
      void catchUp({ reconciler, router, doorbell, clock, reachable: () => watch.isReachable });
    },
  });

  tie(channels, {
    async onTransaction(values) {
      await intake.take(values).catch((error: unknown) => {
        metrics.refused.inc();
        throw error;
      });
      doorbell.listen(values);
      keepers.embedding.nudge();
      metrics.received.inc(values.length);
    },
    onMisfit: (raw, reason) => intake.takeMisfit(raw, reason),
    onPing: (id) => sole.hear(id),
    isReachable: () => watch.isReachable,
    sole: () => sole,
    onFresh: (fresh) => router.routeFresh(fresh),
    onStored: (roomIds) => router.route(roomIds),
    onOutbox: (roomIds) => delivery.nudge(roomIds),
    onAllowed: () => delivery.resume(),
    onWoken: (conversations) => keeper.send(conversations),
    onChanged: welcomeSoon,
    tellOperators: (text, key) => controlRoom.tellOperators(text, key),
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
    encryption,
    keepers,
    outside,
    background: [mind.compactor, mind.summaries],
    doorbell,
    sole,
    watch,
    controlRoom,
    guests,
  };
}
