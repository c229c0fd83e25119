import type { LookupAddress, LookupAllOptions } from "node:dns";
import { isIP, type LookupFunction } from "node:net";
import ipaddr from "ipaddr.js";
import { UserError } from "./errors.ts";

const ranges = (...cidrs: string[]) => cidrs.map((cidr) => ipaddr.parseCIDR(cidr));

/** Only these are addresses of the whole world, in IPv6. */
const [worldV6] = ranges("2000::/3") as [ReturnType<typeof ipaddr.parseCIDR>];
/** Parts of them that lead elsewhere after all: tunnels, examples, benchmarks, AS112. */
const notWorldV6 = ranges("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20", "2620:4f:8000::/48");
/** Addresses that look public, and are a cloud's own service for its machines. */
const ofClouds = ranges("168.63.129.16/32");

/** Endings of names that are only known in a house, or stand for a machine itself. */
const ownNames = /\.(?:localhost|local|localdomain|internal|home|home\.arpa|lan|intranet|private|corp|onion|test)$/;

const webPorts: readonly number[] = [80, 443];

/** True if the address is one that everybody in the world can reach. False for all that cannot be read. */
export const isPublicAddress = (address: string): boolean => {
  // A zone, as in fe80::1%eth0, names an interface of this machine.
  if (isIP(address) === 0 || address.includes("%")) return false;
  const ip = ipaddr.parse(address);
  if (ip.range() !== "unicast") return false;
  if (ip.kind() === "ipv4") return !ofClouds.some((range) => range[0].kind() === "ipv4" && ip.match(range));
  return ip.match(worldV6) && !notWorldV6.some((range) => ip.match(range));
};

/** True if it is a name that the world can know: with a dot, letters behind it, and no ending of a house's own. */
export const isPublicName = (name: string): boolean => {
  const plain = name.toLowerCase().replace(/\.$/, "");
  return /\.[a-z]/.test(plain) && !ownNames.test(plain);
};

/** A host as an address names it, and its port. */
export interface Door {
  /** A name, or an address without brackets. */
  readonly host: string;
  readonly port: number;
}

/** Exact places that the operator has opened, such as a wiki in the house, each as `host:port`. */
export class OpenDoors {
  readonly #doors: ReadonlySet<string>;

  constructor(doors: readonly string[]) {
    this.#doors = new Set(doors.map((door) => nameOfDoor(doorOf(new URL(`http://${door}`)))));
  }

  has(door: Door): boolean {
    return this.#doors.has(nameOfDoor(door));
  }
}

const nameOfDoor = ({ host, port }: Door): string => `${host.toLowerCase().replace(/\.$/, "")}:${port}`;

/** The door to which an address of http or https leads. */
export const doorOf = ({ hostname, port, protocol }: URL): Door => ({
  host: hostname.replace(/^\[|\]$/g, ""),
  port: Number(port || (protocol === "https:" ? 443 : 80)),
});

/** Says why nobody may go to a door before its name is looked up; undefined if that is the next thing to do. */
export const refusalOfDoor = (door: Door, open: OpenDoors): string | undefined => {
  const { host, port } = door;
  if (open.has(door)) return undefined;
  if (!webPorts.includes(port)) return `port ${port} is not one of the web (80, 443)`;
  if (isIP(host) === 0 ? isPublicName(host) : isPublicAddress(host)) return undefined;
  return `${host} is not a public ${isIP(host) === 0 ? "name" : "address"}`;
};

/** Asks for all addresses of a name, in the form of `dns.lookup`. */
export type LookupAll = (
  name: string,
  options: LookupAllOptions,
  callback: (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void,
) => void;

/**
 * Makes the `lookup` of a connection: the name is asked for once, and the connection gets exactly the addresses that
 * were looked at. One that is not public refuses the whole name. It is never called for a host that is an address:
 * `refusalOfDoor` comes first. The error does not name the addresses, as they tell of the house.
 */
export const pinnedLookup =
  (lookupAll: LookupAll): LookupFunction =>
  (name, options, callback) => {
    lookupAll(name, { ...options, all: true }, (error, found) => {
      const [first] = found ?? [];
      const refused = (text: string): void => callback(new UserError(text), "", 0);
      if (error) return callback(error, "", 0);
      // An empty answer would end the process, in Node's own code.
      if (first === undefined) return refused(`${name} has no address`);
      if (!found.every(({ address }) => isPublicAddress(address))) return refused(`${name} is not a public address`);
      if (options.all) callback(null, found);
      else callback(null, first.address, first.family);
    });
  };
