import { mkdir, readFile, rename, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { join } from "node:path";
import { z } from "zod";
import { UserError } from "../../base/lib/errors.ts";
import { secret } from "../../base/lib/ids.ts";

/** Everything of the demo is in here, below the project's folder. */
export const demoDir = join(import.meta.dirname, "../../../.demo");
const file = join(demoDir, "demo.json");

const stateSchema = z.object({
  ports: z.object({ homeserver: z.int(), bridge: z.int(), model: z.int() }),
  /** Of the user `you`, for other Matrix clients. */
  password: z.string(),
  /** Of the user `you`, for this one. */
  accessToken: z.string().optional(),
  /** In which `you` and the agent are alone. */
  roomId: z.string().optional(),
  /** Digest of all that the bridge was started with. */
  startedWith: z.string().optional(),
});

/** State of the demo between one start and the next. */
export type DemoState = z.infer<typeof stateSchema>;

/** @throws UserError when the file is damaged */
export const readState = async (): Promise<DemoState | undefined> => {
  const text = await readFile(file, "utf8").catch(() => undefined);
  if (text === undefined) return undefined;
  try {
    return stateSchema.parse(JSON.parse(text));
  } catch {
    throw new UserError(`${file} is damaged. Start over: npm run demo -- reset`);
  }
};

/** Replaces the file at once, so that it is never half written. */
export const writeState = async (state: DemoState): Promise<void> => {
  await writeFile(`${file}.new`, `${JSON.stringify(state, undefined, 2)}\n`, { mode: 0o600 });
  await rename(`${file}.new`, file);
};

/** The usual ports, or the next free ones. */
export const createState = async (): Promise<DemoState> => {
  await mkdir(demoDir, { recursive: true, mode: 0o700 });
  const homeserver = await freePort(8008, []);
  const bridge = await freePort(9009, [homeserver]);
  const model = await freePort(bridge + 1, [homeserver]);
  const state = { ports: { homeserver, bridge, model }, password: secret(8) };
  await writeState(state);
  return state;
};

const freePort = async (port: number, taken: readonly number[]): Promise<number> =>
  !taken.includes(port) && (await isFree(port)) ? port : freePort(port + 1, taken);

/** @throws UserError when another program has taken the port since it was chosen */
export const claimPort = async (port: number): Promise<void> => {
  if (await isFree(port)) return;
  throw new UserError(`Port ${port} is used by another program: end it, or choose anew with: npm run demo -- reset`);
};

const isFree = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const server = createServer();
    server.once("error", () => resolve(false));
    server.listen(port, "127.0.0.1", () => server.close(() => resolve(true)));
  });
