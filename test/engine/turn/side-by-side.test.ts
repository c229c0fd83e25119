import { describe, expect, it } from "vitest";
import { Parked, Stopped } from "../../../src/engine/turn/interruption.ts";
import { type Lane, sideBySide } from "../../../src/engine/turn/side-by-side.ts";

const never = new AbortController().signal;
const aborted = ({ signal }: Lane) =>
  new Promise<string>((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));

describe("work side by side", () => {
  it("begins all at once, and is finished in order, whichever is done first", async () => {
    const seen: string[] = [];
    const last = Promise.withResolvers<string>();
    await sideBySide(["a", "b", "c"], never, {
      begin: async (item) => {
        seen.push(`begin ${item}`);
        if (item === "c") last.resolve("now");
        await (item === "a" ? last.promise : undefined);
        return item;
      },
      finish: async (item, begun) => void seen.push(`finish ${item} ${begun}`),
    });
    expect(seen).toEqual(["begin a", "begin b", "begin c", "finish a a", "finish b b", "finish c c"]);
  });

  it("reaches each once those before it are finished", async () => {
    const finished: string[] = [];
    const before: Record<string, string[]> = {};
    await sideBySide(["a", "b", "c"], never, {
      async begin(item, { reached }) {
        await reached;
        before[item] = [...finished];
      },
      finish: async (item) => void finished.push(item),
    });
    expect(before).toEqual({ a: [], b: ["a"], c: ["a", "b"] });
  });

  it("ends those behind the first that fails, and finishes those before it", async () => {
    const finished: string[] = [];
    const ends: unknown[] = [];
    const work = sideBySide(["a", "b", "c", "d"], never, {
      async begin(item, lane) {
        if (item === "a") return item;
        if (item === "b") throw new Error("a bug");
        if (item === "c") return aborted(lane).catch((error: unknown) => Promise.reject(ends.push(error)));
        return lane.reached.catch((error: unknown) => ends.push(error)).then(() => item);
      },
      finish: async (item) => void finished.push(item),
    });
    await expect(work).rejects.toThrow("a bug");
    expect(finished).toEqual(["a"]);
    expect(ends).toEqual([expect.any(Stopped), expect.any(Stopped)]);
  });

  it("ends them for the reason itself where somebody goes on with the turn", async () => {
    const parked = new Parked([]);
    let reason: unknown;
    const work = sideBySide(["a", "b"], never, {
      async begin(item, lane) {
        if (item === "a") throw parked;
        await aborted(lane).catch((error: unknown) => {
          reason = error;
        });
      },
      finish: async () => {},
    });
    await expect(work).rejects.toBe(parked);
    expect(reason).toBe(parked);
  });

  it("ends with the turn", async () => {
    const turn = new AbortController();
    const work = sideBySide(["a", "b"], turn.signal, { begin: (_, lane) => aborted(lane), finish: async () => {} });
    turn.abort(new Stopped("the turn was stopped"));
    await expect(work).rejects.toThrow("the turn was stopped");
  });
});
