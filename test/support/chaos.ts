import { setTimeout as sleep } from "node:timers/promises";
import { answerTo } from "./answers.ts";
import type { BridgeProcess } from "./bridge-process.ts";
import type { Fault } from "./http-proxy.ts";
import { eventually } from "./poll.ts";
import { type ModelRequest, newMessages, type Step, say } from "./scripted-model.ts";
import { agentOf, roomOf } from "./sight.ts";
import type { Stage } from "./stage.ts";
import type { TestUser } from "./user.ts";

/** Numbers from 0 to 1, the same for the same seed. */
export function dice(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** After up to half a second the agent answers each question that names it, and says nothing to others. */
export const answerOwn = (roll: () => number) =>
  async function* (request: ModelRequest): AsyncGenerator<Step> {
    yield { wait: sleep(roll() * 500) };
    const own = newMessages(request).filter(({ body }) => body.endsWith(` for ${agentOf(request)}`));
    if (own.length === 0) yield "nothing for me";
    for (const [index, { body }] of own.entries())
      yield say(request, roomOf(request), answerTo(body), { final: index === own.length - 1 });
  };

/** Says it once, however often the homeserver has to be asked. */
export async function insist(user: TestUser, room: string, content: Readonly<Record<string, unknown>>): Promise<void> {
  const path = `v3/rooms/${encodeURIComponent(room)}/send/m.room.message/${user.client.makeTxnId()}`;
  const send = () => user.api("PUT", path, { body: { msgtype: "m.text", ...content } });
  await eventually(send, { within: 120_000, what: "the homeserver to take a message" });
}

/** Says if bridges may be started: not while their database is copied. */
export interface Gate {
  isOpen: boolean;
}

/** Starts a bridge that does not run, again and again, until the signal; then once more, and waits until it is ready. */
export async function keepUp(bridge: BridgeProcess, gate: Gate, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    if (!bridge.isRunning && gate.isOpen) await bridge.start({ isReady: false }).catch(() => {});
    await sleep(250);
  }
  const ready = async () => {
    if (!bridge.isRunning) await bridge.start({ isReady: false });
    return (await fetch(`${bridge.url}/health/ready`)).ok;
  };
  await eventually(ready, { within: 60_000, what: "the bridge to be ready" });
}

/** Things that go wrong with whatever the stage has; each is over when it resolves. */
function disasters(stage: Stage, roll: () => number): (() => Promise<void>)[] {
  const { homeserver, toBridge, toDatabase, toHomeserver, toModel } = stage;
  const bridge = () => stage.bridges[Math.floor(roll() * stage.bridges.length)] ?? stage.bridge;
  const forMs = (most: number) => sleep(roll() * most);
  const during = async (fault: Fault, most: number) => {
    await forMs(most);
    fault.lift();
  };
  const changes = { when: ({ method }: { method: string }) => method !== "GET", times: 3 };
  const onBoth = [
    () => bridge().kill(),
    () => bridge().kill(),
    async () => {
      const frozen = bridge();
      frozen.signal("SIGSTOP");
      await forMs(20_000);
      frozen.signal("SIGCONT");
    },
    async () => {
      await homeserver.synapse.kill();
      await forMs(5_000);
      await homeserver.synapse.restart();
    },
    // It forgets what it was about to push, and pushes what comes then.
    async () => {
      const held = toBridge.hold();
      await forMs(5_000);
      await homeserver.synapse.kill();
      held.lift();
      await homeserver.synapse.restart();
    },
    // It forgets under which ids it was sent what.
    async () => {
      const cut = toHomeserver.cutAnswer(changes);
      await forMs(3_000);
      await homeserver.synapse.kill();
      homeserver.forgetTransactions();
      cut.lift();
      await homeserver.synapse.restart();
    },
    () => during(toHomeserver.respond({ status: 200, isAfter: true }, changes), 5_000),
    () => during(toHomeserver.respond({ status: 404, body: { errcode: "M_UNRECOGNIZED" } }, changes), 5_000),
    () => during(toHomeserver.goOn(" ".repeat(100_000), changes), 5_000),
    () => during(toModel.goOn(": nothing\n\n", { times: 2 }), 10_000),
    () => during(toHomeserver.cutAnswer(changes), 5_000),
    () => during(toHomeserver.holdAnswer(changes), 5_000),
    () => during(toHomeserver.delay(1_000), 5_000),
    () => during(toHomeserver.respond({ status: 503 }, { times: 5 }), 5_000),
    () => during(toBridge.cutAnswer({ times: 3 }), 5_000),
    () => during(toBridge.hold(), 5_000),
    () => during(toModel.cutAnswer({ times: 2 }), 5_000),
  ];
  if (!toDatabase) return onBoth;
  return [
    ...onBoth,
    async () => toDatabase.cut(),
    async () => {
      const heal = await makeUnwell(stage, roll);
      await forMs(8_000);
      await heal();
    },
    async () => {
      toDatabase.hold("answers");
      await forMs(10_000);
      toDatabase.cut();
      toDatabase.release();
    },
    async () => {
      await toDatabase.refuse();
      await forMs(5_000);
      await toDatabase.accept();
    },
    async () => {
      await stage.query(
        "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()",
      );
    },
  ];
}

/** Codes of a full disk, too many connections, an I/O error, a collision, a deadlock, a database that cannot be written. */
const unwell = ["53100", "53300", "58030", "40001", "40P01", "25006"] as const;
const written = ["events", "steps", "outbox", "wakes", "turns"] as const;

/** PostgreSQL refuses to write into one of the tables, by one of the codes; returns how to end that. */
async function makeUnwell(stage: Stage, roll: () => number): Promise<() => Promise<void>> {
  const code = unwell[Math.floor(roll() * unwell.length)];
  const table = written[Math.floor(roll() * written.length)];
  await stage.query(`create or replace function chaos() returns trigger language plpgsql as
    $$ begin raise exception 'chaos: the database is unwell' using errcode = '${code}'; end $$`);
  await stage.query(
    `create trigger chaos before insert or update on ${table} for each statement execute function chaos()`,
  );
  return async () => void (await stage.query(`drop trigger chaos on ${table}`));
}

/** Ends the bridges, and does the work before they may start again. */
async function withoutBridges<Result>(stage: Stage, gate: Gate, work: () => Promise<Result>): Promise<Result> {
  gate.isOpen = false;
  await Promise.all(stage.bridges.map((bridge) => bridge.stop()));
  // One may have been about to start.
  await sleep(400);
  await Promise.all(stage.bridges.map((bridge) => bridge.kill()));
  try {
    return await work();
  } finally {
    gate.isOpen = true;
  }
}

/** Makes a backup of the database when its bridges have ended in order; returns how to bring it back, beside a homeserver that has started anew. */
export async function backUp(stage: Stage, gate: Gate): Promise<() => Promise<void>> {
  const bringBack = await withoutBridges(stage, gate, () => stage.copyDatabase());
  return () =>
    withoutBridges(stage, gate, async () => {
      await bringBack();
      // It keeps its answer to a sync for two minutes, and forgets it with its process.
      await stage.homeserver.synapse.restart();
    });
}

/** For so long one thing after the other goes wrong. */
export async function goWrong(stage: Stage, roll: () => number, forMs: number): Promise<void> {
  const all = disasters(stage, roll);
  const end = performance.now() + forMs;
  while (performance.now() < end) {
    await sleep(500 + roll() * 3_000);
    await all[Math.floor(roll() * all.length)]?.();
  }
}
