import { describe, expect, it, vi } from "vitest";
import { HomeserverError } from "../../../src/adapters/matrix/answer.ts";
import { RetryError } from "../../../src/base/lib/errors.ts";
import type { RoomId, UserId } from "../../../src/base/lib/ids.ts";
import { readOnce } from "../../../src/edges/routing/read-once.ts";

const [ann, ben] = ["@ann:test" as UserId, "@ben:test" as UserId];
const [room, other] = ["!room:test" as RoomId, "!other:test" as RoomId];

describe("a room of which something may have been missed", () => {
  it("is read once for each user", async () => {
    const read = vi.fn(async (_user: UserId, _room: RoomId) => {});
    const once = readOnce(read);
    await Promise.all([once(ann, room), once(ann, room), once(ben, room), once(ann, other)]);
    await once(ann, room);
    expect(read.mock.calls).toEqual([
      [ann, room],
      [ben, room],
      [ann, other],
    ]);
  });

  it("is read again where the homeserver did not answer", async () => {
    const read = vi.fn(async (_user: UserId, _room: RoomId) => {});
    read.mockRejectedValueOnce(new HomeserverError("sync", { statusCode: 502 }));
    const once = readOnce(read);
    await expect(once(ann, room)).rejects.toThrow(RetryError);
    await once(ann, room);
    expect(read).toHaveBeenCalledTimes(2);
  });

  it("is as if it was read where the user may not read it", async () => {
    const read = vi.fn(async (_user: UserId, _room: RoomId) => {
      throw new HomeserverError("sync", { statusCode: 403, errcode: "M_FORBIDDEN" });
    });
    await readOnce(read)(ann, room);
  });
});
