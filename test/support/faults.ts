import { afterAll, beforeAll, beforeEach, describe } from "vitest";
import type { HttpProxy, RequestHead } from "./http-proxy.ts";
import { eventually } from "./poll.ts";
import { Stage } from "./stage.ts";
import type { TestUser } from "./user.ts";

/** Scene of each test: the bridge runs, and the room is a new one of ann and the agent. */
export interface Scene {
  readonly stage: Stage;
  readonly ann: TestUser;
  readonly room: string;
}

/**
 * Defines the tests twice, on each database, for bridges that are killed in them: each test has a bridge that has just
 * started, and to which the homeserver has nothing to push.
 */
export function killedOnEachDatabase(tests: (scene: () => Scene) => void): void {
  describe.each(["embedded", "postgres"] as const)("killed, on the %s database", (database) => {
    let stage: Stage;
    let ann: TestUser;
    let scene: Scene;
    beforeAll(async () => {
      stage = await Stage.set({ database });
      ann = await stage.user("ann");
    });
    beforeEach(async () => {
      await stage.bridge.start();
      scene = { stage, ann, room: await stage.directRoom(ann) };
      await quiet(stage.toBridge);
      return () => stage.bridge.stop();
    });
    afterAll(() => stage.strike());
    tests(() => scene);
  });
}

/** The texts of the room's messages, oldest first. */
export const saidIn = async (user: TestUser, room: string): Promise<string[]> =>
  (await user.messages(room)).map(({ body }) => body);

/** A request of the homeserver that pushes events. */
export const isTransaction = ({ method, path }: RequestHead): boolean =>
  method === "PUT" && path.startsWith("/_matrix/app/v1/transactions/");

/** A request of the bridge that sends a message into the room, encrypted or not. */
export const sendsTo =
  (roomId: string) =>
  ({ method, path }: RequestHead): boolean =>
    method === "PUT" &&
    /\/send\/m\.room\.(?:message|encrypted)\//.test(path) &&
    decodeURIComponent(path).includes(`/rooms/${roomId}/`);

/** Waits until the homeserver has pushed nothing for half a second: whatever it pushes next is the test's own. */
export async function quiet({ requests }: HttpProxy, within?: number): Promise<void> {
  let seen = { count: -1, at: 0 };
  const look = () => {
    if (requests.length !== seen.count) seen = { count: requests.length, at: performance.now() };
    return performance.now() - seen.at > 500;
  };
  await eventually(look, { what: "the homeserver to have nothing to push", ...(within !== undefined && { within }) });
}

/** The first transaction that comes after the call. */
export function nextTransaction({ requests }: HttpProxy): () => Promise<RequestHead> {
  const before = requests.length;
  return () => eventually(() => requests.slice(before).find(isTransaction), { what: "a transaction" });
}

/** Pushes events as the homeserver would; returns the status. */
export const push = (stage: Stage, transactionId: string, events: readonly unknown[]): Promise<number> =>
  pushText(stage, transactionId, JSON.stringify({ events }));

/** Pushes whatever text in place of a transaction; returns the status. */
export async function pushText(stage: Stage, transactionId: string, body: string): Promise<number> {
  const url = `${stage.toBridge.url}/_matrix/app/v1/transactions/${encodeURIComponent(transactionId)}`;
  const headers = { authorization: `Bearer ${stage.homeserver.registration.hs_token}` };
  return (await fetch(url, { method: "PUT", headers, body })).status;
}

/** One number of the database; see `Stage.query` for when it may be asked. */
export async function count(stage: Stage, from: string): Promise<number> {
  const [row] = await stage.query<{ n: number }>(`select count(*)::int as n from ${from}`);
  return row?.n ?? 0;
}
