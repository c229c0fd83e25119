import { describe, expect, it } from "vitest";
import { openChannels, tie } from "../../../src/app/start/channels.ts";
import type { RoomId } from "../../../src/base/lib/ids.ts";

describe("a channel", () => {
  it("hands a call to the part that is tied to it later, and back what that returns", () => {
    const channels = openChannels();
    // Parts take the channels that they need, together with other services.
    const { isReachable, onOutbox } = { ...channels };
    const told: unknown[] = [];
    tie(channels, { ...channels, isReachable: () => false, onOutbox: (roomIds) => told.push(...roomIds) });
    onOutbox(["!room:test" as RoomId]);
    expect([isReachable(), told]).toEqual([false, ["!room:test"]]);
  });

  it("refuses a call before a part is tied to it", () => {
    expect(() => openChannels().onAllowed()).toThrow("nothing is tied to the channel onAllowed");
  });
});
