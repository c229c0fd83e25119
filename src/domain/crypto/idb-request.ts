type Handler = ((event: Event) => void) | null;

/** Calls whoever listens, by either of the two ways that IndexedDB has. */
export function fire(target: EventTarget, event: Event): void {
  const handler = (target as unknown as Record<string, Handler | undefined>)[`on${event.type}`];
  if (handler) target.addEventListener(event.type, handler, { once: true });
  target.dispatchEvent(event);
}

/** One thing that was asked of the store. */
export class StoreRequest extends EventTarget {
  onsuccess: Handler = null;
  onerror: Handler = null;
  readyState: "pending" | "done" = "pending";
  source: unknown = null;
  transaction: unknown = null;
  #result: unknown;
  #error: unknown = null;

  get result(): unknown {
    if (this.readyState === "pending") throw new DOMException("there is no answer yet", "InvalidStateError");
    return this.#result;
  }

  get error(): unknown {
    return this.#error;
  }

  /** Gives the answer, and says so. */
  answer(result: unknown, event = new Event("success")): void {
    this.#result = result;
    this.readyState = "done";
    fire(this, event);
  }

  refuse(error: unknown): void {
    this.#result = undefined;
    this.#error = error;
    this.readyState = "done";
    fire(this, new Event("error"));
  }
}

export class OpenRequest extends StoreRequest {
  onupgradeneeded: Handler = null;
  onblocked: Handler = null;
}

/** The database has to be brought to a newer version. */
export class VersionChange extends Event {
  readonly oldVersion: number;
  readonly newVersion: number;

  constructor(oldVersion: number, newVersion: number) {
    super("upgradeneeded");
    this.oldVersion = oldVersion;
    this.newVersion = newVersion;
  }
}
