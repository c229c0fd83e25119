import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";

/** Addresses that the machine has in the network of the test. */
const four =
  `93.184.216.34 10.0.0.1 172.16.0.1 192.168.0.1 100.64.0.1 169.254.169.254 192.0.0.192 198.18.0.1 203.0.113.1
  168.63.129.16`.split(/\s+/);
const six =
  `2606:2800:220:1::1 64:ff9b::7f00:1 64:ff9b:1::7f00:1 2002:7f00:1:: 2001:0:1::1 2001:2::1 2001:db8::1 3fff::1
  5f00::1 fc00::1 fd00:ec2::254 fec0::1 100::1 fe80::1 ::127.0.0.1`.split(/\s+/);

const open = `http://public.example.com/ http://93.184.216.34/ http://[2606:2800:220:1::1]/
  http://public.example.com/to?http%3A%2F%2Fpublic.example.com%2Fx`.split(/\s+/);

const closed =
  `http://127.0.0.1/ http://127.1/ http://0/ http://0.0.0.0/ http://2130706433/ http://0x7f000001/ http://0x7f.0.0.1/
  http://0177.0.0.1/ http://017700000001/ http://127.0.0.1./ http://127。0。0。1/ http://①②⑦.⓪.⓪.①/ http://%31%32%37.0.0.1/
  http://localhost/ http://localhost./ http://LOCALHOST/ http://a.localhost/ http://127.0.0.1.nip.io/ http://10.0.0.1/
  http://172.16.0.1/ http://192.168.0.1/ http://100.64.0.1/ http://169.254.169.254/latest/meta-data/
  http://metadata.google.internal/ http://192.0.0.192/ http://198.18.0.1/ http://203.0.113.1/ http://224.0.0.1/
  http://240.0.0.1/ http://255.255.255.255/ http://168.63.129.16/ http://[::1]/ http://[::]/ http://[::ffff:127.0.0.1]/
  http://[::ffff:7f00:1]/ http://[0:0:0:0:0:ffff:169.254.169.254]/ http://[::127.0.0.1]/ http://[64:ff9b::127.0.0.1]/
  http://[64:ff9b:1::7f00:1]/ http://[2002:7f00:1::]/ http://[2001:0:1::1]/ http://[2001:2::1]/ http://[2001:db8::1]/
  http://[3fff::1]/ http://[5f00::1]/ http://[fc00::1]/ http://[fd00:ec2::254]/ http://[fe80::1]/ http://[fec0::1]/
  http://[ff02::1]/ http://[100::1]/ http://private.example.com/ http://loop.example.com/ http://meta.example.com/
  http://six.example.com/ http://mapped.example.com/ http://mixed.example.com/ http://mixed2.example.com/
  http://mixed6.example.com/ http://nat64.example.com/ http://nat64l.example.com/ http://compat.example.com/
  http://site.example.com/ http://srv6.example.com/ http://doc.example.com/ http://bench.example.com/ http://link.example.com/
  http://none.example.com/ http://db/ http://intern.local/ http://public.example.com:8008/ http://public.example.com:2375/
  http://user:pw@public.example.com/ http://public.example.com@127.0.0.1/ http://127.0.0.1#@public.example.com/
  http://127.0.0.1\\@public.example.com/ http://public.example.com/to?http%3A%2F%2F127.0.0.1%2F
  http://public.example.com/to?%2F%2F169.254.169.254%2Flatest http://public.example.com/to?http%3A%2F%2Floop.example.com%2F
  http://public.example.com/to?http%3A%2F%2F[%3A%3Affff%3A127.0.0.1]%2F
  http://public.example.com/to?http%3A%2F%2Fpublic.example.com%3A8008%2F
  http://public.example.com/to?file%3A%2F%2F%2Fetc%2Fpasswd http://public.example.com/loop file:///etc/passwd
  ftp://public.example.com/ gopher://127.0.0.1:6379/_INFO data:text/html,x javascript:1 //127.0.0.1/ http:///`.split(
    /\s+/,
  );

const rebinding = "http://rebind.example.com/";

interface Outcome {
  readonly url: string;
  /** Servers that were reached. */
  readonly hits: readonly string[];
  readonly asked: Readonly<Record<string, number>>;
  readonly text?: string;
  readonly error?: string;
}

const isPossible = (() => {
  try {
    execFileSync("unshare", ["-n", "ip", "link", "set", "lo", "up"], { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
})();

// A network of one's own needs root: the tables in public-address.test.ts hold the rules without it.
describe.skipIf(!isPossible)("addresses that all lead to servers", () => {
  let outcomes: ReadonlyMap<string, Outcome>;
  beforeAll(() => {
    const setUp = [
      "ip link set lo up",
      ...four.map((address) => `ip addr add ${address}/32 dev lo`),
      ...six.map((address) => `ip -6 addr add ${address}/128 dev lo nodad || true`),
      'exec "$0" "$@"',
    ].join("\n");
    const script = join(import.meta.dirname, "../../support/hostile-addresses.ts");
    const urls = JSON.stringify([...open, ...closed, rebinding]);
    const printed = execFileSync("unshare", ["-n", "sh", "-c", setUp, process.execPath, script, urls], {
      encoding: "utf8",
      stdio: ["ignore", "pipe", "ignore"],
      maxBuffer: 10_000_000,
    });
    const lines = printed.trim().split("\n");
    outcomes = new Map(lines.map((line) => JSON.parse(line) as Outcome).map((outcome) => [outcome.url, outcome]));
  }, 120_000);

  it.each(open)("%s is reached", (url) => {
    expect(outcomes.get(url)).toMatchObject({ text: "<p>secret</p>" });
  });

  it.each(closed)("%s is refused, and no server but a public one is reached", (url) => {
    const { hits, error, text } = outcomes.get(url) ?? { hits: ["nothing was tried"] };
    expect(text).toBeUndefined();
    expect(error).toMatch(/^UserError: ./);
    expect(hits.filter((hit) => hit !== "93.184.216.34:80")).toEqual([]);
  });

  it("a name whose second answer is another one is asked for once, and the first answer is where it leads", () => {
    const { asked, hits, text } = outcomes.get(rebinding) ?? {};
    expect(text).toBe("<p>secret</p>");
    expect(hits).toEqual(["93.184.216.34:80"]);
    expect(asked).toEqual({ "rebind.example.com 1": 1, "rebind.example.com 28": 1 });
  });

  it("no error tells the address behind a name", () => {
    for (const { url, error = "" } of outcomes.values())
      if (URL.parse(url)?.hostname.endsWith(".example.com") && !url.includes("/to?"))
        expect(error).not.toMatch(/\d+\.\d+\.\d+|::/);
  });
});
