import { HomeserverError, type MatrixClient } from "../../src/adapters/matrix/client.ts";

type Json = Record<string, unknown>;
type Asked = Parameters<MatrixClient["request"]>[2];

interface ServedDevice {
  keys: Json | undefined;
  oneTime: Map<string, unknown>;
  fallback: [string, unknown] | undefined;
  /** Messages to the device, each with its place. */
  readonly inbox: { readonly at: number; readonly event: Json }[];
}

/** The part of a homeserver that devices' keys and messages need, in memory. It forgets what is acknowledged. */
export class KeyServer {
  /** All that was asked, oldest first: `POST keys/upload`. */
  readonly asked: string[] = [];
  /** Called before each sync is answered. */
  onSync: () => Promise<void> = async () => {};
  readonly #devices = new Map<string, ServedDevice>();
  readonly #identities = new Map<string, Json>();
  readonly #signatures: Json[] = [];
  readonly #transactions = new Set<string>();
  /** Replaces a one-time key of a device for whoever claims it; undefined: nobody is given one. */
  claimed: (deviceId: string, key: Json) => Json | undefined = (_deviceId, key) => key;
  #changed: { at: number; user: string }[] = [];
  #kept: (() => void)[] | undefined;
  #at = 1;

  readonly client: Pick<MatrixClient, "request" | "register" | "putDevice"> = {
    request: async (method, path, asked) => {
      const what = `${method} ${path.replace(/^\/_matrix\/client\/v3\//, "")}`;
      if (what === "GET sync") await this.onSync();
      return this.#serve(what, asked);
    },
    register: async () => {},
    putDevice: async () => {},
  };

  /** Master key of the user, as others see it. */
  masterOf(user: string): unknown {
    return (this.#identities.get(user)?.master_key as Json | undefined)?.keys;
  }

  /** Gives a message to all devices of the user. */
  deliver(user: string, event: Json): void {
    this.#at += 1;
    for (const [key, { inbox }] of this.#devices) if (key.startsWith(`${user} `)) inbox.push({ at: this.#at, event });
  }

  /** From now on messages to devices arrive nowhere; returns how to have them arrive, with those that come. */
  keep(): () => void {
    this.#kept = [];
    return () => {
      for (const arrive of this.#kept ?? []) arrive();
      this.#kept = undefined;
    };
  }

  #device(user: string, device: string): ServedDevice {
    const key = `${user} ${device}`;
    const known = this.#devices.get(key);
    if (known) return known;
    const made = { keys: undefined, oneTime: new Map(), fallback: undefined, inbox: [] };
    this.#devices.set(key, made);
    return made;
  }

  #serve(what: string, { as, body = {}, query = {} }: NonNullable<Asked> = {}): Json {
    this.asked.push(what.replace(/(sendToDevice)\/.*/, "$1"));
    const user = as?.userId ?? "";
    const device = this.#device(user, as?.deviceId ?? "");
    switch (what) {
      case "POST keys/upload":
        return this.#upload(user, device, body);
      case "POST keys/query":
        return this.#query(Object.keys(body.device_keys as Json), user);
      case "POST keys/claim":
        return this.#claim(body.one_time_keys as Record<string, Record<string, string>>);
      case "POST keys/device_signing/upload":
        this.#identities.set(user, body);
        this.#tell(user);
        return {};
      case "POST keys/signatures/upload":
        this.#signatures.push(body);
        this.#tell(user);
        return {};
      case "GET sync":
        return this.#sync(device, Number(query.since ?? 0));
    }
    if (what.startsWith("DELETE devices/")) {
      this.#devices.delete(`${user} ${what.slice("DELETE devices/".length)}`);
      this.#tell(user);
      return {};
    }
    const [, type, transaction] = /^PUT sendToDevice\/([^/]+)\/(.+)$/.exec(what) ?? [];
    if (type === undefined) throw new Error(`nobody serves ${what}`);
    return this.#sendTo(user, decodeURIComponent(type), `${user} ${as?.deviceId} ${transaction}`, body);
  }

  #upload(user: string, device: ServedDevice, body: Json): Json {
    if (body.device_keys) {
      device.keys = body.device_keys as Json;
      this.#tell(user);
    }
    for (const [id, key] of Object.entries((body.one_time_keys ?? {}) as Json)) {
      const known = device.oneTime.get(id);
      if (known && JSON.stringify(known) !== JSON.stringify(key)) {
        const error = `One time key ${id} already exists. Old key: …`;
        throw new HomeserverError("POST keys/upload", { statusCode: 400, errcode: "M_UNKNOWN", error });
      }
      device.oneTime.set(id, key);
    }
    const [fallback] = Object.entries((body.fallback_keys ?? {}) as Json);
    if (fallback) device.fallback = fallback;
    return { one_time_key_counts: { signed_curve25519: device.oneTime.size } };
  }

  #query(users: readonly string[], asker: string): Json {
    const answer: Record<string, Json> = {
      device_keys: {},
      master_keys: {},
      self_signing_keys: {},
      user_signing_keys: {},
    };
    for (const user of users) {
      const theirs = [...this.#devices].filter(([key, { keys }]) => key.startsWith(`${user} `) && keys);
      const devices = theirs.map(([key, { keys }]) => [key.split(" ")[1], this.#signed(user, keys as Json)]);
      Object.assign(answer.device_keys as Json, { [user]: Object.fromEntries(devices) });
      const identity = this.#identities.get(user);
      if (identity?.master_key) Object.assign(answer.master_keys as Json, { [user]: identity.master_key });
      if (identity?.self_signing_key)
        Object.assign(answer.self_signing_keys as Json, { [user]: identity.self_signing_key });
      if (identity?.user_signing_key && user === asker)
        Object.assign(answer.user_signing_keys as Json, { [user]: identity.user_signing_key });
    }
    return answer;
  }

  #signed(user: string, keys: Json): Json {
    const signatures = structuredClone((keys.signatures ?? {}) as Record<string, Json>);
    for (const uploaded of this.#signatures as Record<string, Record<string, Json>>[]) {
      const signed = uploaded[user]?.[String(keys.device_id)]?.signatures as Record<string, Json> | undefined;
      for (const [by, made] of Object.entries(signed ?? {})) signatures[by] = { ...signatures[by], ...made };
    }
    return { ...keys, signatures };
  }

  #claim(wanted: Record<string, Record<string, string>>): Json {
    const keys: Record<string, Json> = {};
    for (const [user, devices] of Object.entries(wanted)) {
      keys[user] = {};
      for (const id of Object.keys(devices)) {
        const device = this.#device(user, id);
        const [key] = device.oneTime;
        const given = key ?? device.fallback;
        if (key) device.oneTime.delete(key[0]);
        const answer = given && this.claimed(id, given[1] as Json);
        if (answer) keys[user][id] = { [given[0]]: answer };
      }
    }
    return { one_time_keys: keys, failures: {} };
  }

  #sendTo(sender: string, type: string, transaction: string, body: Json): Json {
    if (this.#transactions.has(transaction)) return {};
    this.#transactions.add(transaction);
    for (const [user, devices] of Object.entries(body.messages as Record<string, Json>)) {
      for (const [id, content] of Object.entries(devices)) {
        const arrive = () => {
          this.#at += 1;
          this.#device(user, id).inbox.push({ at: this.#at, event: { sender, type, content } });
        };
        if (this.#kept) this.#kept.push(arrive);
        else arrive();
      }
    }
    return {};
  }

  #tell(user: string): void {
    this.#at += 1;
    this.#changed.push({ at: this.#at, user });
  }

  #sync(device: ServedDevice, since: number): Json {
    const left = device.inbox.filter(({ at }) => at > since);
    device.inbox.splice(0, device.inbox.length, ...left);
    const given = left.slice(0, 100);
    const next = given.length < left.length ? (given.at(-1)?.at ?? since) : this.#at;
    const changed = this.#changed.filter(({ at }) => at > since && at <= next).map(({ user }) => user);
    return {
      next_batch: String(next),
      to_device: { events: given.map(({ event }) => event) },
      device_lists: { changed: [...new Set(changed)], left: [] },
      device_one_time_keys_count: { signed_curve25519: device.oneTime.size },
      device_unused_fallback_key_types: device.fallback ? ["signed_curve25519"] : [],
    };
  }
}
