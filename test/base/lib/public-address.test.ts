import { describe, expect, it } from "vitest";
import {
  doorOf,
  isPublicAddress,
  isPublicName,
  type LookupAll,
  OpenDoors,
  pinnedLookup,
  refusalOfDoor,
} from "../../../src/base/lib/public-address.ts";

const addresses = (text: string): string[] => text.trim().split(/\s+/);

const open = addresses(`
  93.184.216.34 1.1.1.1 8.8.8.8 100.63.255.255 100.128.0.0 172.15.255.255 172.32.0.0 192.167.255.255 198.17.255.255
  223.255.255.255 168.63.129.15 2606:2800:220:1::1 2001:4860:4860::8888 2a00:1450:4001:82b::200e`);

const closed = addresses(`
  0.0.0.0 0.1.2.3 10.0.0.1 10.255.255.255 100.64.0.1 100.100.100.200 100.127.255.255 127.0.0.1 127.255.255.255
  169.254.169.254 172.16.0.1 172.31.255.255 192.0.0.192 192.0.2.1 192.88.99.1 192.168.0.1 198.18.0.1 198.19.255.255
  198.51.100.1 203.0.113.1 224.0.0.1 239.255.255.255 240.0.0.1 255.255.255.255 168.63.129.16
  :: ::1 ::127.0.0.1 ::ffff:127.0.0.1 ::ffff:7f00:1 ::ffff:93.184.216.34 0:0:0:0:0:ffff:169.254.169.254
  64:ff9b::127.0.0.1 64:ff9b::5db8:d822 64:ff9b:1::7f00:1 100::1 2001:0:1::1 2001:2::1 2001:10::1 2001:20::1 2001:db8::1
  2002:7f00:1:: 2620:4f:8000::1 3fff::1 5f00::1 4000::1 fc00::1 fd00:ec2::254 fe80::1 fe80::1%lo fec0::1 ff02::1 ff0e::1
  2606:2800:220:1::1%eth0 localhost 127.1 0x7f000001 2130706433 1.2.3 1.2.3.4.5 12345::1 [::1] 1.2.3.4/8`);

describe("an address", () => {
  it.each(open)("%s is public", (address) => expect(isPublicAddress(address)).toBe(true));
  it.each([...closed, ""])("%s is not public", (address) => expect(isPublicAddress(address)).toBe(false));
});

describe("a name", () => {
  it.each(["example.com", "EXAMPLE.com.", "a.b.c.example.org", "xn--bcher-kva.example", "local.example.com"])(
    "%s may be looked up",
    (name) => expect(isPublicName(name)).toBe(true),
  );
  it.each(
    addresses(`localhost localhost. a.localhost db intern.local intern.LOCAL. metadata.google.internal
      router.lan nas.home nas.home.arpa www.corp hidden.onion x.test x.intranet localhost.localdomain 127.0.0.1.`),
  )("%s is only known in a house", (name) => expect(isPublicName(name)).toBe(false));
});

describe("a door", () => {
  const none = new OpenDoors([]);
  const refusal = (address: string, doors = none) => refusalOfDoor(doorOf(new URL(address)), doors);

  it("is refused where its port is not one of the web", () => {
    expect(refusal("http://example.com:8008/")).toBe("port 8008 is not one of the web (80, 443)");
    expect(refusal("https://example.com:80/")).toBeUndefined();
    expect(refusal("http://example.com/")).toBeUndefined();
    expect(refusal("https://example.com/")).toBeUndefined();
  });

  // The URL standard makes a plain address of all of these.
  it.each(
    addresses(`http://127.0.0.1/ http://127.1/ http://0/ http://2130706433/ http://0x7f000001/ http://0x7f.0.0.1/
      http://0177.0.0.1/ http://017700000001/ http://127.0.0.1./ http://127。0。0。1/ http://①②⑦.⓪.⓪.①/
      http://%31%32%37.0.0.1/ http://[::1]/ http://[::ffff:127.0.0.1]/ http://[64:ff9b::127.0.0.1]/ http://LOCALHOST/
      http://user@127.0.0.1/ http://127.0.0.1#@example.com/ http://127.0.0.1\\@example.com/`),
  )("%s is refused", (address) => expect(refusal(address)).toMatch(/is not a public (?:name|address)/));

  it("that the operator has opened is exactly one host and one port", () => {
    const doors = new OpenDoors(["wiki.lan:8080", "127.0.0.1:9000", "[::1]:9000", "Intra.Example.com:80"]);
    expect(refusal("http://WIKI.lan.:8080/", doors)).toBeUndefined();
    expect(refusal("http://127.0.0.1:9000/", doors)).toBeUndefined();
    expect(refusal("http://2130706433:9000/", doors)).toBeUndefined();
    expect(refusal("http://[::1]:9000/", doors)).toBeUndefined();
    expect(doors.has({ host: "intra.example.com", port: 80 })).toBe(true);
    expect(refusal("http://wiki.lan/", doors)).toBeDefined();
    expect(refusal("http://127.0.0.1:9001/", doors)).toBeDefined();
    expect(refusal("http://127.0.0.2:9000/", doors)).toBeDefined();
    expect(refusal("http://a.wiki.lan:8080/", doors)).toBeDefined();
  });
});

describe("the lookup of a connection", () => {
  const asked: string[] = [];
  const zone =
    (...found: string[]): LookupAll =>
    (name, _, callback) => {
      asked.push(name);
      callback(
        null,
        found.map((address) => ({ address, family: address.includes(":") ? 6 : 4 })),
      );
    };
  const ask = (lookup: LookupAll, all = true) =>
    new Promise((resolve, reject) => {
      pinnedLookup(lookup)("a.example", { all }, (error, address, family) =>
        error ? reject(error) : resolve(all ? address : [address, family]),
      );
    });

  it("gives the addresses that it has looked at, after one question", async () => {
    asked.length = 0;
    await expect(ask(zone("93.184.216.34", "2606:2800:220:1::1"))).resolves.toEqual([
      { address: "93.184.216.34", family: 4 },
      { address: "2606:2800:220:1::1", family: 6 },
    ]);
    await expect(ask(zone("93.184.216.34"), false)).resolves.toEqual(["93.184.216.34", 4]);
    expect(asked).toEqual(["a.example", "a.example"]);
  });

  it.each([
    [["127.0.0.1"]],
    [["93.184.216.34", "127.0.0.1"]],
    [["127.0.0.1", "93.184.216.34"]],
    [["93.184.216.34", "::1"]],
    [["fe80::1%lo"]],
    [["nonsense"]],
  ])("refuses a name with %s, and does not tell the addresses", async (found) => {
    await expect(ask(zone(...found))).rejects.toThrow(/^a\.example is not a public address$/);
    await expect(ask(zone(...found), false)).rejects.toThrow(/^a\.example is not a public address$/);
  });

  it("makes an error of an empty answer, and hands on that of the resolver", async () => {
    await expect(ask(zone())).rejects.toThrow("a.example has no address");
    const fails: LookupAll = (_, __, callback) => callback(Object.assign(new Error("ENOTFOUND")), []);
    await expect(ask(fails)).rejects.toThrow("ENOTFOUND");
  });
});
