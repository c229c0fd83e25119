import { expect, it, vi } from "vitest";
import { newPingOfCheck } from "../../../src/adapters/matrix/probe.ts";
import { systemClock } from "../../../src/base/lib/clock.ts";
import { silentLog } from "../../../src/base/lib/log.ts";
import { Pings } from "../../../src/domain/tables/pings.ts";
import { SoleBridge } from "../../../src/edges/routing/sole-bridge.ts";
import { onEachDatabase } from "../../support/database.ts";
import { newKey } from "../../support/rows.ts";

onEachDatabase((database) => {
  /** A process, and the homeserver that it asks: `ping` says what that does with an id. */
  const process = () => {
    const ping = vi.fn(async (_id: string): Promise<boolean> => false);
    const tellOperators = vi.fn();
    const onAllowed = vi.fn();
    const pings = new Pings(database());
    const parts = { client: { ping }, pings, clock: systemClock, log: silentLog, tellOperators, onAllowed };
    return { sole: new SoleBridge(parts), ping, tellOperators, onAllowed };
  };
  const passedTo = (sole: SoleBridge) => async (id: string) => {
    await sole.hear(id);
    return true;
  };
  const elsewhere = async () => true;

  it("that hears its own ping may work, and so may one whose ping another process on its database hears", async () => {
    const [one, other] = [process(), process()];
    one.ping.mockImplementation(passedTo(one.sole));
    expect(await one.sole.ask()).toBe(true);
    one.ping.mockImplementation(passedTo(other.sole));
    expect(await one.sole.ask()).toBe(true);
    expect(other.tellOperators).not.toHaveBeenCalled();
  });

  it("whose ping somebody else hears may not, until it hears one itself", async () => {
    const { sole, ping, onAllowed } = process();
    ping.mockImplementation(elsewhere);
    expect(await sole.ask()).toBe(false);
    ping.mockRejectedValue(new Error("the homeserver is away"));
    expect(await sole.ask()).toBe(false);
    expect(onAllowed).not.toHaveBeenCalled();
    ping.mockImplementation(passedTo(sole));
    expect(await sole.ask()).toBe(true);
    expect(onAllowed).toHaveBeenCalledOnce();
  });

  it("whose ping reaches nobody may work, as where a homeserver knows no pings", async () => {
    const { sole, ping } = process();
    ping.mockRejectedValue(new Error("404 M_UNRECOGNIZED"));
    expect(await sole.ask()).toBe(true);
    ping.mockResolvedValue(false);
    expect(await sole.ask()).toBe(true);
  });

  it("may work where its ping came and the answer to it was lost", async () => {
    const { sole, ping } = process();
    ping.mockImplementation(elsewhere);
    await sole.ask();
    ping.mockImplementation(async (id) => {
      await sole.hear(id);
      throw new Error("502");
    });
    expect(await sole.ask()).toBe(true);
  });

  it("may work where the homeserver leaves out the id", async () => {
    const { sole, ping, tellOperators } = process();
    ping.mockImplementation(async () => {
      await sole.hear(undefined);
      return true;
    });
    expect(await sole.ask()).toBe(true);
    expect(tellOperators).not.toHaveBeenCalled();
  });

  it("that hears the ping of another bridge says so, and of `check` does not", async () => {
    const { sole, tellOperators } = process();
    await sole.hear(newPingOfCheck());
    expect(tellOperators).not.toHaveBeenCalled();
    await sole.hear(newKey());
    expect(tellOperators).toHaveBeenCalledOnce();
    expect(sole.mayWork).toBe(true);
  });

  it("that has no ping under way hears that of another also without its id", async () => {
    await database().sql`update pings set asked_at = asked_at - interval '1 minute'`;
    const { sole, tellOperators } = process();
    await sole.hear(undefined);
    expect(tellOperators).toHaveBeenCalledOnce();
  });

  it("tells `check` of what was heard on its database", async () => {
    const [one, other, id] = [process(), process(), newPingOfCheck()];
    expect(await other.sole.wasHeard(id)).toBe(false);
    await one.sole.hear(id);
    expect(await other.sole.wasHeard(id)).toBe(true);
  });

  it("asks once at a time, and forgets old pings", async () => {
    const { sole, ping } = process();
    await Promise.all([sole.ask(), sole.ask()]);
    expect(ping).toHaveBeenCalledOnce();
    await database().sql`update pings set asked_at = now() - interval '2 hours', heard_at = null`;
    await sole.ask();
    expect(await database().sql`select 1 from pings`).toHaveLength(1);
  });
});
