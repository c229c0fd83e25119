import { createSocket } from "node:dgram";
import { Resolver } from "node:dns";
import { createServer } from "node:http";
import { isIP } from "node:net";
import { WayOut } from "../../src/adapters/web/way-out.ts";
import type { LookupAll } from "../../src/base/lib/public-address.ts";

// Runs in a network of its own, where every address below is one of this machine: whoever connects to it really gets there,
// and nothing leaves. Prints one line of JSON for each address. Started by hostile-addresses.test.ts.

const hits: string[] = [];
const serve = (port: number): Promise<void> =>
  new Promise((resolve) => {
    const server = createServer((request, response) => {
      hits.push(`${request.socket.localAddress?.replace("::ffff:", "")}:${port}`);
      const to = /^\/to\?(.*)$/.exec(request.url ?? "")?.[1];
      if (to !== undefined) response.writeHead(302, { location: decodeURIComponent(to) }).end();
      else if (request.url === "/loop") response.writeHead(302, { location: "/loop" }).end();
      else response.writeHead(200, { "content-type": "text/html" }).end("<p>secret</p>");
    });
    server.listen({ port, host: "::", ipv6Only: false }, resolve);
  });
await Promise.all([80, 8008, 2375].map(serve));

/** Answers of the name server, one set after the other; the last stays. */
const zone: Readonly<Record<string, readonly (readonly string[])[]>> = {
  "public.example.com": [["93.184.216.34"]],
  "private.example.com": [["10.0.0.1"]],
  "loop.example.com": [["127.0.0.1"]],
  "meta.example.com": [["169.254.169.254"]],
  "six.example.com": [["::1"]],
  "mapped.example.com": [["::ffff:127.0.0.1"]],
  "mixed.example.com": [["93.184.216.34", "127.0.0.1"]],
  "mixed2.example.com": [["127.0.0.1", "93.184.216.34"]],
  "mixed6.example.com": [["93.184.216.34", "::1"]],
  "rebind.example.com": [["93.184.216.34"], ["127.0.0.1"]],
  "nat64.example.com": [["64:ff9b::7f00:1"]],
  "none.example.com": [[]],
  "compat.example.com": [["::7f00:1"]],
  "site.example.com": [["fec0::1"]],
  "nat64l.example.com": [["64:ff9b:1::7f00:1"]],
  "link.example.com": [["fe80::1"]],
  "metadata.google.internal": [["169.254.169.254"]],
  localhost: [["127.0.0.1"]],
  db: [["10.0.0.1"]],
  "intern.local": [["10.0.0.1"]],
  "a.localhost": [["127.0.0.1"]],
  "127.0.0.1.nip.io": [["127.0.0.1"]],
  "srv6.example.com": [["5f00::1"]],
  "doc.example.com": [["3fff::1"]],
  "bench.example.com": [["2001:2::1"]],
};

const bytesOf = (address: string): Buffer => {
  if (isIP(address) === 4) return Buffer.from(address.split(".").map(Number));
  const [head = "", tail] = address.replace("::ffff:127.0.0.1", "::ffff:7f00:1").split("::");
  const groups = (text = "") => (text === "" ? [] : text.split(":"));
  const [before, after] = [groups(head), groups(tail)];
  const all = [...before, ...Array<string>(8 - before.length - after.length).fill("0"), ...after];
  return Buffer.from(all.map((group) => group.padStart(4, "0")).join(""), "hex");
};

const asked = new Map<string, number>();
const nameServer = createSocket("udp4", (question, from) => {
  const labels: string[] = [];
  let at = 12;
  for (let size = question[at] ?? 0; size > 0; size = question[at] ?? 0) {
    labels.push(question.subarray(at + 1, at + 1 + size).toString());
    at += size + 1;
  }
  const name = labels.join(".").toLowerCase();
  const type = question.readUInt16BE(at + 1);
  const key = `${name} ${type}`;
  const count = asked.get(key) ?? 0;
  asked.set(key, count + 1);
  const sets = zone[name];
  const set = sets?.[Math.min(count, sets.length - 1)] ?? [];
  const records = set.filter((address) => (isIP(address) === 6) === (type === 28)).map(bytesOf);
  const head = Buffer.from(question.subarray(0, 12));
  head.writeUInt16BE(0x8180 | (sets ? 0 : 3), 2);
  head.writeUInt16BE(records.length, 6);
  head.writeUInt32BE(0, 8);
  const answers = records.map((data) =>
    Buffer.concat([Buffer.from([0xc0, 12, 0, type, 0, 1, 0, 0, 0, 0, 0, data.length]), data]),
  );
  nameServer.send(Buffer.concat([head, question.subarray(12, at + 5), ...answers]), from.port, from.address);
});
await new Promise<void>((resolve) => nameServer.bind(5_353, "127.0.0.1", resolve));

const resolver = new Resolver({ timeout: 500, tries: 1 });
resolver.setServers(["127.0.0.1:5353"]);
/** Asks the name server of the test as `dns.lookup` would: for both kinds of addresses. */
const lookup: LookupAll = (name, _, callback) => {
  resolver.resolve4(name, (error, four = []) => {
    resolver.resolve6(name, (_error, six = []) => {
      const found = [
        ...four.map((address) => ({ address, family: 4 })),
        ...six.map((address) => ({ address, family: 6 })),
      ];
      callback(found.length === 0 && error?.code !== "ENODATA" ? error : null, found);
    });
  });
};

const way = new WayOut({ allow: [], lookup, totalMs: 3_000 });
for (const url of JSON.parse(process.argv[2] ?? "[]") as string[]) {
  hits.length = 0;
  asked.clear();
  const most = () => 1_000_000;
  const said = await way
    .get(url, { signal: AbortSignal.timeout(10_000), accept: "*/*", most })
    .then(({ bytes }) => ({ text: Buffer.from(bytes).toString() }))
    .catch((error: Error) => ({ error: `${error.name}: ${error.message}` }));
  console.log(JSON.stringify({ url, hits, asked: Object.fromEntries(asked), ...said }));
}
process.exit(0);
