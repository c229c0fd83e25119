import { rm } from "node:fs/promises";
import { join } from "node:path";
import { systemClock } from "../../base/lib/clock.ts";
import type { DemoEnvironment } from "../../base/lib/demo-environment.ts";
import { UserError } from "../../base/lib/errors.ts";
import type { RoomId, UserId } from "../../base/lib/ids.ts";
import {
  chooseModel,
  configFile,
  type DemoModel,
  registrationFile,
  serverName,
  writeDemoConfig,
} from "./demo-config.ts";
import { Background } from "./demo-process.ts";
import { exchange } from "./demo-say.ts";
import { claimPort, createState, type DemoState, demoDir, readState, writeState } from "./demo-state.ts";
import { DemoUser } from "./demo-user.ts";
import { findRunning, startHomeserver } from "./homeserver.ts";
import { oneAtATime } from "./one-at-a-time.ts";

const you = `@you:${serverName}` as UserId;
const agent = `@agent_helper:${serverName}` as UserId;
const homeserverDir = join(demoDir, "homeserver");
const joinMs = 30_000;
const drainMs = 15_000;

const bridge = new Background({
  name: "bridge",
  args: ["start", "--config", configFile],
  pidFile: join(demoDir, "bridge.pid"),
  logFile: join(demoDir, "clevernet.log"),
});
const rehearsal = new Background({
  name: "rehearsal model",
  args: ["demo", "rehearsal"],
  pidFile: join(demoDir, "rehearsal.pid"),
  logFile: join(demoDir, "rehearsal.log"),
});

/** Hears what happens, a line at a time. */
type Tell = (line: string) => void;

/**
 * Starts whatever does not run yet: a homeserver, the bridge, a rehearsal model where there is no other; and brings
 * the agent together with a user. All of it goes on when this process ends.
 */
export const startDemo = (environment: DemoEnvironment, tell: Tell): Promise<void> =>
  oneAtATime(environment.cacheDir, tell, () => bringUp(environment, tell));

const bringUp = async (environment: DemoEnvironment, tell: Tell): Promise<void> => {
  let state = (await readState()) ?? (await createState());
  const remember = (news: Partial<DemoState>) => {
    state = { ...state, ...news };
    return writeState(state);
  };
  const model = await chooseModel(environment, state);
  const startedWith = await writeDemoConfig(state, model);
  tell(`configuration: ${configFile}`);

  const [url] = await Promise.all([
    runHomeserver(state, environment.cacheDir, tell),
    model.isRehearsal ? runRehearsal(state, tell) : rehearsal.stop(drainMs),
  ]);
  const user = await DemoUser.signIn(url, you, state);
  await remember({ accessToken: user.accessToken });
  tell(`user: ${you}`);

  await runBridge(state, state.startedWith === startedWith, tell);
  await remember({ startedWith });

  const roomId = await meet(user, state.roomId as RoomId | undefined, tell);
  await remember({ roomId });
  tell(await summary(url, state, model));
};

const runHomeserver = async ({ ports }: DemoState, cacheDir: string, tell: Tell): Promise<string> => {
  const running = await findRunning(homeserverDir);
  if (running) tell(`homeserver: runs already, ${running.url}`);
  if (running) return running.url;
  await claimPort(ports.homeserver);
  const { url } = await startHomeserver({
    dir: homeserverDir,
    port: ports.homeserver,
    serverName,
    registrations: [registrationFile],
    cacheDir,
    isDetached: true,
    onProgress: (text) => tell(`homeserver: ${text}`),
  });
  tell(`homeserver: ${url}`);
  return url;
};

const runRehearsal = async ({ ports }: DemoState, tell: Tell): Promise<void> => {
  if (await rehearsal.pid()) return tell("rehearsal model: runs already");
  await claimPort(ports.model);
  const up = () => isAnswering(`http://127.0.0.1:${ports.model}/v1/models`);
  await rehearsal.start(up, ["--port", String(ports.model)]);
  tell("rehearsal model: started");
};

const runBridge = async ({ ports }: DemoState, isUnchanged: boolean, tell: Tell): Promise<void> => {
  const ready = () => isAnswering(`http://127.0.0.1:${ports.bridge}/health/ready`);
  if (await bridge.pid()) {
    if (isUnchanged && (await ready())) return tell("bridge: runs already");
    tell(`bridge: ${isUnchanged ? "runs without being ready" : "its configuration has changed"}, stopping it ...`);
    await bridge.stop(drainMs);
  }
  await claimPort(ports.bridge);
  tell("bridge: starting ...");
  await bridge.start(ready);
  tell("bridge: ready");
};

/** Finds the room in which the user and the agent are, or makes one, and waits for the agent. */
const meet = async (user: DemoUser, known: RoomId | undefined, tell: Tell): Promise<RoomId> => {
  if (known && (await user.membersOf(known)).includes(agent)) return known;
  const roomId = await user.createDirectRoom(agent);
  const deadline = systemClock.monotonic() + joinMs;
  while (!(await user.membersOf(roomId)).includes(agent)) {
    if (systemClock.monotonic() > deadline) {
      throw new UserError(`${agent} has not come to its room within ${joinMs / 1000} s. Its log: ${bridge.logFile}`);
    }
    await systemClock.sleep(50);
  }
  tell(`room: ${agent} has come`);
  return roomId;
};

const summary = async (url: string, { password }: DemoState, { isRehearsal, section }: DemoModel): Promise<string> => `
${agent} is listening.

  say something      npm run demo -- say "hello"
  any Matrix client  homeserver ${url}, user you, password ${password}
  model              ${
    isRehearsal
      ? `a rehearsal: a script without any intelligence. For a real one set OPENROUTER_API_KEY,
                     or MODEL_BASE_URL and MODEL_NAME (and MODEL_API_KEY), and run this again`
      : `${section.name} at ${section.baseUrl}`
  }
  bridge             process ${await bridge.pid()}, log ${bridge.logFile}
  stop               npm run demo -- stop (and to forget everything: npm run demo -- reset)
`;

/** Says something to the agent as the user, and passes on what is answered. */
export const sayInDemo = async (text: string, onAnswer: Tell): Promise<void> => {
  const state = await readState();
  const homeserver = await findRunning(homeserverDir);
  if (!state?.roomId || !homeserver || !(await bridge.pid())) {
    throw new UserError("The demo is not running. Start it: npm run demo");
  }
  const user = await DemoUser.signIn(homeserver.url, you, state);
  if (user.accessToken !== state.accessToken) await writeState({ ...state, accessToken: user.accessToken });
  const check = async (): Promise<void> => {
    if (!(await bridge.pid())) throw new UserError("The bridge has ended.");
  };
  await exchange({ user, roomId: state.roomId as RoomId, text, onAnswer, check }).catch((error: unknown) => {
    if (!(error instanceof UserError)) throw error;
    throw new UserError(`${error.message} Its log: ${bridge.logFile}. Start it again: npm run demo`);
  });
};

/** Ends everything that runs, and keeps the data. */
export const stopDemo = ({ cacheDir }: DemoEnvironment, tell: Tell): Promise<void> =>
  oneAtATime(cacheDir, tell, () => bringDown(tell));

/** Ends everything, and deletes all of its data. */
export const resetDemo = ({ cacheDir }: DemoEnvironment, tell: Tell): Promise<void> =>
  oneAtATime(cacheDir, tell, async () => {
    await bringDown(tell);
    await rm(demoDir, { recursive: true, force: true });
    tell(`deleted: ${demoDir}`);
  });

const bringDown = async (tell: Tell): Promise<void> => {
  const homeserver = await findRunning(homeserverDir);
  const stopped = {
    bridge: await bridge.stop(drainMs),
    "rehearsal model": await rehearsal.stop(drainMs),
    homeserver: homeserver !== undefined,
  };
  await homeserver?.stop();
  const names = Object.entries(stopped).flatMap(([name, was]) => (was ? [name] : []));
  tell(names.length > 0 ? `stopped: ${names.join(", ")}` : "nothing was running");
};

const isAnswering = (url: string): Promise<boolean> =>
  fetch(url, { signal: AbortSignal.timeout(2_000) }).then(
    ({ ok }) => ok,
    () => false,
  );
