import { describe, expect, it } from "vitest";
import type { EventId, RoomId } from "../../../src/base/lib/ids.ts";
import { threadToSpeakIn } from "../../../src/domain/speech/speaking.ts";
import type { TakenWake } from "../../../src/domain/tables/turns.ts";
import { threadOf } from "../../../src/engine/turn/cause.ts";

const wake = (eventId: string | null, threadId: string | null = null): TakenWake => ({
  id: 1,
  reason: "new event",
  eventId: eventId as EventId | null,
  threadId: threadId as EventId | null,
  requester: null,
  note: null,
  isWithheld: false,
  isRedacted: false,
  sources: [],
  taint: [],
});

describe("the thread of a turn", () => {
  it("is the one that all of its events stand in, at the newest of them", () => {
    expect(threadOf([wake("$1", "$root"), wake("$2", "$root"), wake(null)])).toEqual({ root: "$root", latest: "$2" });
  });

  it.each([
    ["nothing was said", [wake(null)]],
    ["it was said outside of threads", [wake("$1")]],
    ["something was said elsewhere, too", [wake("$1"), wake("$2", "$root")]],
    ["it was said in several threads", [wake("$1", "$root"), wake("$2", "$other")]],
  ])("is none where %s", (_, wakes) => {
    expect(threadOf(wakes)).toBeUndefined();
  });
});

describe("the thread that a call speaks in", () => {
  const [here, elsewhere] = ["!here" as RoomId, "!elsewhere" as RoomId];
  const thread = { root: "$root" as EventId, latest: "$newest" as EventId };

  it("is the turn's, also where it is named", () => {
    expect(threadToSpeakIn(undefined, here, { roomId: here, thread })).toBe(thread);
    expect(threadToSpeakIn("$root", here, { roomId: here, thread })).toBe(thread);
  });

  it("is another where another is named, of which only its root is known", () => {
    const other = { root: "$other", latest: "$other" };
    expect(threadToSpeakIn("$other", here, { roomId: here, thread })).toEqual(other);
    expect(threadToSpeakIn("$other", here, { roomId: here, thread: undefined })).toEqual(other);
  });

  it("is not the turn's in another room", () => {
    expect(threadToSpeakIn(undefined, elsewhere, { roomId: here, thread })).toBeUndefined();
  });
});
