import type { Clock } from "../../base/lib/clock.ts";
import type { RoomId, UserId } from "../../base/lib/ids.ts";

/** Messages that wake agents, per minute; as many may come at once. */
export interface WakeLimits {
  /** Of one person, in all rooms together; as many commands besides. */
  readonly requester: number;
  /** In one room, by all together. */
  readonly room: number;
}

/** `wasTold`: too many, and whoever sent it has not heard so since there were last none at all. */
export type Admission = "admitted" | "refused" | "told";

/** A room is told once in so long that messages cannot be read. */
const tellEveryMs = 10 * 60_000;

/** Keeps people from waking agents, and from commanding, faster than is good. In memory: each process counts what it routes itself. */
export class Throttle {
  readonly #people: Buckets;
  readonly #commanders: Buckets;
  readonly #rooms: Buckets;
  readonly #toldAgainAt = new Map<RoomId, number>();
  readonly #clock: Clock;

  /** `limits`: as they are now. */
  constructor(limits: () => WakeLimits, clock: Clock) {
    this.#people = new Buckets(() => limits().requester, clock);
    this.#commanders = new Buckets(() => limits().requester, clock);
    this.#rooms = new Buckets(() => limits().room, clock);
    this.#clock = clock;
  }

  /** True where the room was not told for some minutes that something cannot be read; from now on it was. */
  admitTelling(roomId: RoomId): boolean {
    const now = this.#clock.monotonic();
    if (now < (this.#toldAgainAt.get(roomId) ?? 0)) return false;
    if (this.#toldAgainAt.size >= bucketsMax)
      for (const [room, at] of this.#toldAgainAt) if (at <= now) this.#toldAgainAt.delete(room);
    this.#toldAgainAt.set(roomId, now + tellEveryMs);
    return true;
  }

  admit(person: UserId, roomId: RoomId): Admission {
    return admitTo([this.#people.of(person), this.#rooms.of(roomId)]);
  }

  /** Commands are counted by themselves: whoever has said too much can still stop what is going on. */
  admitCommand(person: UserId): Admission {
    return admitTo([this.#commanders.of(person)]);
  }

  /** A command that was admitted, and wakes agents: it counts as a message, too. Whoever commands too much hears it once for both. */
  admitWakingCommand(person: UserId, roomId: RoomId): Admission {
    return admitTo([this.#people.of(person), this.#rooms.of(roomId)], this.#commanders.of(person));
  }
}

/** Takes one from each of the buckets. If one of them is empty, `teller` knows if that was told; left out, the empty one does. */
function admitTo(buckets: readonly Bucket[], teller?: Bucket): Admission {
  const empty = buckets.find(({ left }) => left < 1);
  if (!empty) {
    for (const bucket of buckets) bucket.left -= 1;
    return "admitted";
  }
  const told = teller ?? empty;
  if (told.wasTold) return "refused";
  told.wasTold = true;
  return "told";
}

interface Bucket {
  left: number;
  at: number;
  wasTold: boolean;
}

/** Buckets that have been full for long are forgotten when there are this many. */
const bucketsMax = 10_000;

class Buckets {
  readonly #perMinute: () => number;
  readonly #clock: Clock;
  readonly #buckets = new Map<string, Bucket>();

  constructor(perMinute: () => number, clock: Clock) {
    this.#perMinute = perMinute;
    this.#clock = clock;
  }

  of(key: string): Bucket {
    const now = this.#clock.monotonic();
    let bucket = this.#buckets.get(key);
    if (!bucket) {
      if (this.#buckets.size >= bucketsMax) this.#forget(now);
      bucket = { left: this.#perMinute(), at: now, wasTold: false };
      this.#buckets.set(key, bucket);
    }
    bucket.left = this.#remainingIn(bucket, now);
    bucket.at = now;
    if (bucket.left === this.#perMinute()) bucket.wasTold = false;
    return bucket;
  }

  #remainingIn({ left, at }: Bucket, now: number): number {
    const perMinute = this.#perMinute();
    return Math.min(perMinute, left + ((now - at) / 60_000) * perMinute);
  }

  #forget(now: number): void {
    for (const [key, bucket] of this.#buckets)
      if (this.#remainingIn(bucket, now) === this.#perMinute()) this.#buckets.delete(key);
  }
}
