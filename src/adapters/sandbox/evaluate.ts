import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { IANAZone } from "luxon";
import { EvalFlags, type JSValueHandle, QuickJS } from "quickjs-wasi";
import { threadCpu } from "../../base/lib/clock.ts";
import { messageOf } from "../../base/lib/errors.ts";
import { guest } from "./guest.ts";

/** Program to be computed, and the world as it finds it. */
export interface Computation {
  /** JavaScript; `await` may stand at its top. */
  readonly code: string;
  /** Time that `Date` gives, from beginning to end; `Math.random` follows from it. */
  readonly now: Date;
  /** IANA name of the zone in which `Date` has its local times. */
  readonly timeZone: string;
}

export interface Computed {
  /** Text written by `console.log`, a line for each call. */
  readonly printed: string;
  /** The value of the last expression, as text: objects as JSON. Undefined where that was the value, or there is none. */
  readonly value: string | undefined;
  /** Why there is no value, with its line if it has one. */
  readonly error: string | undefined;
}

/** Of a processor: a busy machine takes nothing of them. */
export const secondsMost = 2;
export const tooLong = `it was stopped after ${secondsMost} seconds of processor time`;
const megabytesMost = 64;
/** Of what was printed, and of the value, each; the rest is counted. */
export const charactersMost = 8_000;

const stackBytes = 256 * 1024;
const fileName = "compute";

const wasm = readFileSync(fileURLToPath(import.meta.resolve("quickjs-wasi/quickjs.wasm")));

/**
 * Runs the code in an interpreter of its own, which has the language and nothing else: no files, no network, no timers.
 * Never throws for what the code does. Some of what takes the interpreter long cannot be interrupted from inside:
 * whoever must not wait runs this in a thread that can be ended.
 */
export async function evaluate({ code, now, timeZone }: Computation): Promise<Computed> {
  const zone = IANAZone.create(timeZone);
  let printed = "";
  let written = 0;
  const until = threadCpu() + secondsMost * 1_000;
  let isLate = false;
  const answer = (value: string | undefined, error?: string): Computed => ({
    printed: cutOutput(printed, written),
    value: value === undefined ? undefined : cutOutput(value),
    error: isLate ? tooLong : error && cutOutput(error),
  });
  try {
    const vm = await QuickJS.create({
      wasm,
      memoryLimit: megabytesMost * 1024 * 1024,
      maxStackSize: stackBytes,
      interruptHandler: () => {
        isLate ||= threadCpu() > until;
        return isLate;
      },
      // As `getTimezoneOffset` has it: minutes that the zone is behind UTC.
      timezoneOffset: (seconds: number) => -zone.offset(seconds * 1_000),
      wasi: (memory: { readonly buffer: ArrayBuffer }) => ({
        clock_time_get(_clock: number, _precision: bigint, result: number) {
          new DataView(memory.buffer).setBigUint64(result, BigInt(now.getTime()) * 1_000_000n, true);
          return 0;
        },
      }),
    });
    const print = vm.newFunction("print", (text) => {
      const line = `${written === 0 ? "" : "\n"}${text?.toString() ?? ""}`;
      printed += line.slice(0, Math.max(0, charactersMost - written));
      written += line.length;
      return vm.undefined;
    });
    const settle = vm.callFunction(vm.evalCode(`(${guest})`), vm.undefined, print);
    const completion = vm.evalCode(code, fileName, EvalFlags.ASYNC);
    const settled = vm.callFunction(settle, vm.undefined, completion);
    vm.executePendingJobs();
    if (settled.promiseState === pending) return answer(undefined, "it waits for something that never comes");
    const result = await vm.resolvePromise(settled);
    if ("error" in result) return answer(undefined, reason(textOf(result.error) ?? ""));
    const [value, error, stack] = ["value", "error", "stack"].map((name) => textOf(result.value.getProp(name)));
    return answer(value, error && reason(error, stack));
  } catch (error) {
    const stack = error instanceof Error ? error.stack : undefined;
    const name = error instanceof Error ? `${error.name}: ` : "";
    return answer(undefined, reason(`${name}${messageOf(error)}`, stack));
  }
}

const pending = 0;

const textOf = (value: JSValueHandle): string | undefined => (value.isUndefined ? undefined : value.toString());

/** The error with the line of the code in which it came up. */
function reason(error: string, stack = ""): string {
  if (/InternalError: out of memory/.test(error)) return `it needs more than ${megabytesMost} MB of memory`;
  const place = new RegExp(`\\b${fileName}:(\\d+)(?::(\\d+))?`).exec(stack);
  if (!place) return error;
  return `${error} (line ${place[1]}${place[2] === undefined ? "" : `, column ${place[2]}`})`;
}

function cutOutput(text: string, length = text.length): string {
  const more = length - charactersMost;
  return more > 0 ? `${text.slice(0, charactersMost)}\n[${more} more characters are left out]` : text;
}
