import { openDatabase } from "../../adapters/database/connection.ts";
import { openLeases } from "../../adapters/database/leases.ts";
import { Care } from "../../adapters/database/maintenance.ts";
import { migrate } from "../../adapters/database/migrate.ts";
import { openNotifier } from "../../adapters/database/notify.ts";
import { untilAnswered, waitForHomeserver } from "../../adapters/matrix/patience.ts";
import type { Registration } from "../../adapters/matrix/registration.ts";
import { systemClock } from "../../base/lib/clock.ts";
import type { Log } from "../../base/lib/log.ts";
import { agentUserId } from "../../domain/agents/agent.ts";
import { introduce } from "../../domain/agents/profile.ts";
import type { Config } from "../config/config.ts";
import { LiveConfig } from "../config/live.ts";

/** Limit of turns that this process works on at the same time. */
const turnsAtOnce = 32;
/** Longest time that turns may go on after the process was asked to end. */
const graceMs = 8_000;

export interface RunningBridge {
  /** Stops: running work is finished, or left to the next start. */
  stop(): Promise<void>;
}

/** Starts everything in order; resolves when agents can answer. Stops again if the signal is aborted meanwhile. */
export async function startBridge(
  config: Config,
  registration: Registration,
  log: Log,
  aborted: AbortSignal,
): Promise<RunningBridge> {
  const clock = systemClock;
  const { serverName } = config.homeserver;
  const stops: (() => void | Promise<void>)[] = [];
  const stop = async (): Promise<void> => {
    for (const one of stops.splice(0).reverse()) await one();
  };
  try {
    const begun = Promise.withResolvers<void>();
    const opening = openDatabase(config.database, begun.resolve);
    await Promise.race([begun.promise, opening]);
    // Loading the program keeps this thread busy while the embedded database opens in its own.
    const { wire } = await import("./wiring.ts");
    const database = await opening;
    stops.push(() => database.close());
    const notifier = await openNotifier(database, clock, log);
    stops.push(() => notifier.close());

    let isReady = false;
    const leases = openLeases({ database, notifier, name: config.bridge.instance, clock, log });
    const [applied, parts] = await Promise.all([
      migrate(database),
      wire({
        live: new LiveConfig(config),
        registration,
        database,
        notifier,
        leases,
        log,
        clock,
        ready: () => isReady,
      }),
    ]);
    if (applied.length > 0) log.info({ applied }, "the database was migrated");
    const { service, client, directory } = parts;
    // From its first request on it notices when the homeserver is gone.
    stops.push(() => parts.watch.stop());
    stops.push(() => service.close());

    const failed = new AbortController();
    const waiting = { clock, log, aborted: AbortSignal.any([aborted, failed.signal]) };
    const insist = <Result>(ask: () => Promise<Result>) => untilAnswered(ask, waiting);
    const welcome = async (): Promise<void> => {
      await waitForHomeserver(config.homeserver.url, () => client.isAlive(), waiting);
      await insist(() => client.register(client.botUserId));
      await insist(() => client.putDevice(client.botUserId, parts.botDevice));
    };
    const prepare = async (): Promise<void> => {
      const [memberships] = await Promise.all([
        parts.rooms.ownMemberships(),
        parts.rights.configure(config.permissions),
        parts.book.start(),
        parts.outside.servers.load(),
        ...config.agents.map((seed) => directory.seed(seed, serverName)),
      ]);
      for (const { roomId, userId, membership } of memberships) service.remember(roomId, userId, membership);
      await service.listen(config.bridge.host, config.bridge.port);
    };
    const prepared = prepare();
    prepared.catch(() => failed.abort());
    // Work that has begun ends before anything is stopped because of an error.
    await welcome().finally(() => prepared);
    // Another bridge with our registration may be at work: this is checked before anything is swept or sent.
    await parts.sole.ask();
    stops.push(() => parts.doorbell.stop());
    void parts.doorbell.ring();
    for (const agent of await directory.all()) await insist(() => introduce(agent, client, directory));

    stops.push(() => leases.stop());
    await leases.start();
    if (leases.isAlone) await directory.restart();
    await parts.controlRoom.adopt();
    stops.push(() => parts.guests.stop());
    parts.guests.start();

    // They end after all parts that use them.
    for (const one of Object.values(parts.outside)) {
      stops.push(() => one.stop());
      one.start();
    }
    stops.push(() => parts.encryption.machines.close());
    stops.push(() => parts.encryption.devices.stop());
    await parts.encryption.devices.start();
    stops.push(() => parts.delivery.stop());
    await parts.delivery.start();
    stops.push(() => parts.thoughts.stop());
    stops.push(() => parts.queue.stop());
    for (const one of parts.background) stops.push(() => one.stop());
    stops.push(() => parts.runner.close(graceMs));
    stops.push(() => parts.keeper.stop());
    await parts.keeper.start(turnsAtOnce, (conversation) => parts.runner.run(conversation));
    stops.push(() => parts.schedules.stop());
    parts.schedules.start();
    stops.push(() => {
      parts.underWay.close();
      return parts.router.stop();
    });
    await parts.router.start();
    const { sealedKeeper } = parts.encryption;
    stops.push(() => sealedKeeper.stop());
    sealedKeeper.start();
    for (const one of Object.values(parts.keepers)) {
      stops.push(() => one.stop());
      one.start();
    }
    stops.push(() => parts.reconciler.stop());
    parts.reconciler.start();
    parts.watch.start();
    const care = new Care(database, clock, log);
    stops.push(() => care.stop());
    care.start();
    isReady = true;
    stops.push(() => {
      isReady = false;
    });
    if (parts.sole.mayWork)
      log.info({ agents: config.agents.map(({ name }) => agentUserId(name, serverName)) }, "Clevernet is ready");
    return { stop };
  } catch (error) {
    await stop();
    throw error;
  }
}
