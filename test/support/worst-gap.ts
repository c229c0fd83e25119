import { threadCpu } from "../../src/base/lib/clock.ts";

/** Most milliseconds of a processor that this thread took at one go while the work was done: nothing else ran meanwhile. */
export const worstGap = async (work: () => Promise<unknown>): Promise<number> => {
  let [last, worst] = [threadCpu(), 0];
  const timer = setInterval(() => {
    const now = threadCpu();
    worst = Math.max(worst, now - last);
    last = now;
  }, 5);
  await work();
  clearInterval(timer);
  return Math.max(worst, threadCpu() - last);
};
