import { AppServiceRegistration, Bridge } from "matrix-appservice-bridge";
import { type DatabaseLocation, openDatabase } from "../../src/adapters/database/connection.ts";
import { migrate } from "../../src/adapters/database/migrate.ts";
import { createApplicationService } from "../../src/adapters/matrix/appservice.ts";
import { silentLog } from "../../src/base/lib/log.ts";
import { Intake } from "../../src/edges/routing/intake.ts";

// A process that takes transactions on a port: `stock` by the bridge library, whose handler does nothing, otherwise by
// our route and our intake into the database that the second argument names, with nobody who routes what is stored.
const host = "127.0.0.1";
const homeserverUrl = `http://${host}:1`;
const registration = {
  id: "bench",
  url: null,
  as_token: "as",
  hs_token: "hs",
  sender_localpart: "bot",
  namespaces: { users: [{ regex: "@agent_.*", exclusive: true }], aliases: [], rooms: [] },
};

async function serveStock(port: number): Promise<void> {
  const bridge = new Bridge({
    homeserverUrl,
    domain: "test",
    registration: AppServiceRegistration.fromObject(registration as never) as AppServiceRegistration,
    disableStores: true,
    logRequestOutcome: false,
    controller: { onEvent: (request) => request.resolve(undefined as never), onLog: () => {} },
  });
  await bridge.run(port, undefined, host, 511);
}

async function serveOurs(port: number, location: DatabaseLocation): Promise<void> {
  const database = await openDatabase(location);
  await migrate(database);
  const intake = new Intake(
    database,
    silentLog,
    () => {},
    () => {},
  );
  const service = await createApplicationService({
    homeserverUrl,
    serverName: "test",
    registration,
    log: silentLog,
    onTransaction: (events) => intake.take(events),
    onPing: async () => {},
    onMisfit: (raw, reason) => intake.takeMisfit(raw, reason),
    userExists: async () => false,
    mount: () => {},
  });
  await service.listen(host, port);
}

const [port, location] = process.argv.slice(2);
if (location === "stock") await serveStock(Number(port));
else await serveOurs(Number(port), JSON.parse(String(location)) as DatabaseLocation);
process.stdout.write("ready\n");
