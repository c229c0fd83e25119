import { createServer } from "node:http";
import { type AddressInfo, connect, createServer as createTcpServer, type TcpNetConnectOpts } from "node:net";
import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";
import { proxyEnvironment, proxyPort, SandboxProxy } from "../../../src/adapters/sandbox/proxy.ts";
import { Reach } from "../../../src/adapters/sandbox/reach.ts";
import { describeSandbox, sharedBox } from "../../support/sandbox.ts";

const world = "93.184.216.34";

describeSandbox("the proxy of a sandbox", () => {
  const box = sharedBox();
  /** Answers of the resolver. */
  let names: Record<string, readonly string[]> = {};
  const asked: string[] = [];
  const dialled: string[] = [];
  const requests: { url: string; headers: Record<string, unknown> }[] = [];
  const web = createServer((request, response) => {
    requests.push({ url: request.url ?? "", headers: request.headers });
    if (request.url === "/large") response.end(Buffer.alloc(2_000_000, 97));
    else request.pipe(response.writeHead(200, { "x-far": "yes" }));
  });
  const echo = createTcpServer((socket) => socket.on("error", () => {}).pipe(socket));
  const portOf = (server: { address(): unknown }): number => (server.address() as AddressInfo).port;
  let proxy: SandboxProxy;

  /** Stands for the world: dials this machine where the address that the proxy chose would be dialled. */
  const dial = (options: TcpNetConnectOpts) => {
    const { host = "", port, lookup } = options;
    return connect({
      ...options,
      port: portOf(port === 443 ? echo : web),
      autoSelectFamily: false,
      lookup: (name, settings, callback) =>
        lookup?.(name, { ...settings, all: true }, (error, found) => {
          if (error) return callback(error, []);
          dialled.push(`${host} ${(found as { address: string }[])[0]?.address}:${port}`);
          callback(null, "127.0.0.1", 4);
        }),
    });
  };

  beforeAll(async () => {
    for (const server of [web, echo]) await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
    await box().runner.listen(proxyPort, (connection) => proxy.serve(connection));
  });
  afterAll(() => {
    web.closeAllConnections();
    web.close();
    echo.close();
  });
  beforeEach(() => {
    names = { "one.example.com": [world], "a.wild.example.net": [world], "registry.npmjs.org": [world] };
    for (const list of [asked, dialled, requests]) list.length = 0;
    proxy = new SandboxProxy({
      reach: new Reach(["one.example.com", ".wild.example.net", "npm"]),
      dial,
      lookupAll: (name, _, callback) => {
        asked.push(name);
        const found = names[name];
        if (!found) return callback(Object.assign(new Error("not found"), { code: "ENOTFOUND" }), []);
        callback(
          null,
          found.map((address) => ({ address, family: address.includes(":") ? 6 : 4 })),
        );
      },
    });
  });
  const exports = Object.entries(proxyEnvironment)
    .map(([name, value]) => `export ${name}=${value};`)
    .join(" ");
  const sh = async (text: string) => (await box().sh(`${exports} ${text}`)).stdout;
  /** Status and body of a plain request. */
  const get = (address: string, more = "") => sh(`curl -sS -m 8 -w ' %{http_code}' ${more} '${address}' 2>&1`);
  /** Status of a CONNECT, and what is echoed behind it. */
  const tunnel = (target: string) =>
    sh(
      `python3 -c '
import socket,sys
s=socket.create_connection(("127.0.0.1",3128),8); s.settimeout(8)
s.sendall(("CONNECT %s HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n" % sys.argv[1]).encode("latin1"))
head=s.recv(4000).decode("latin1").split("\\r\\n")[0]
if " 200 " in head: s.sendall(b"hello"); head+=" "+s.recv(5).decode()
print(head)' ${JSON.stringify(target)}`,
    );

  it("carries plain requests and tunnels to allowed hosts, at the address that was looked at", async () => {
    expect(await get("http://one.example.com/path?q=1", "-d body")).toBe("body 200");
    expect(await tunnel("one.example.com:443")).toBe("HTTP/1.1 200 Connection established hello\n");
    expect(await tunnel("A.Wild.Example.NET.:443")).toMatch(/^HTTP\/1.1 200 .*hello/);
    expect(dialled).toEqual([
      `one.example.com ${world}:80`,
      `one.example.com ${world}:443`,
      `a.wild.example.net ${world}:443`,
    ]);
    expect(asked).toEqual(["one.example.com", "one.example.com", "a.wild.example.net"]);
    expect(requests.map(({ url, headers }) => [url, headers.host])).toEqual([["/path?q=1", "one.example.com"]]);
  });

  it("counts bytes by host, and what it refused", async () => {
    const before = proxy.traffic.counts();
    expect((await get("http://one.example.com/large")).length).toBe(2_000_004);
    await tunnel("other.example.org:443");
    const [one, other] = proxy.traffic.since(before);
    expect(one).toMatchObject({ host: "one.example.com", refused: 0 });
    expect(one?.received).toBeGreaterThan(2_000_000);
    expect(one?.sent).toBeGreaterThan(40);
    expect(other).toEqual({ host: "other.example.org", sent: 0, received: 0, refused: 1 });
    expect(proxy.traffic.since(proxy.traffic.counts())).toEqual([]);
  });

  it.each([
    ["a host that is not allowed", "other.example.org:443", "other.example.org is not allowed"],
    ["the domain itself, where those below it are allowed", "wild.example.net:443", "is not allowed"],
    ["a host that ends like an allowed one", "xone.example.com:443", "is not allowed"],
    ["another port", "one.example.com:22", "port 22 is not one of the web"],
    ["no port", "one.example.com:0", "port 0 is not one of the web"],
    ["IPv4", `${world}:443`, "is an address"],
    ["loopback", "127.0.0.1:443", "is an address"],
    ["a decimal address", "2130706433:443", "is an address"],
    ["a short address", "127.1:443", "is an address"],
    ["a hexadecimal address", "0x7f000001:443", "is an address"],
    ["IPv6", "[::1]:443", "takes a host's name and a port"],
    ["a user's name", "one.example.com@other.example.org:443", "takes a host's name and a port"],
    ["a path", "one.example.com/x:443", "takes a host's name and a port"],
    ["nothing", ":443", "takes a host's name and a port"],
    ["localhost", "localhost:443", "is not allowed"],
  ])("refuses %s", async (_, target, says) => {
    expect(await tunnel(target)).toMatch(/^HTTP\/1.1 403 Clevernet: /);
    expect(await tunnel(target)).toContain(says);
    expect([asked, dialled]).toEqual([[], []]);
  });

  it.each([
    ["10.0.0.1"],
    ["127.0.0.1"],
    ["169.254.169.254"],
    ["192.168.1.1"],
    ["100.64.0.1"],
    ["::1"],
    ["fe80::1"],
    ["fd00::1"],
    ["::ffff:127.0.0.1"],
    ["64:ff9b::7f00:1"],
  ])("refuses a name that leads to %s, also beside a public one", async (address) => {
    names = { "one.example.com": [world, address] };
    expect(await tunnel("one.example.com:443")).toContain("403 Clevernet: one.example.com is not a public address");
    names = { "one.example.com": [address] };
    expect(await get("http://one.example.com/")).toBe("Clevernet: one.example.com is not a public address\n 403");
    expect(dialled).toEqual([]);
  });

  it("says that a name is not known", async () => {
    names = {};
    expect(await tunnel("one.example.com:443")).toBe(
      "HTTP/1.1 502 Clevernet: the host cannot be reached (ENOTFOUND)\n",
    );
    expect(await get("http://one.example.com/")).toContain("cannot be reached (ENOTFOUND)\n 502");
  });

  it("asks for the host of the address, whatever the request's fields say, and hands no proxy's fields on", async () => {
    await get(
      "http://one.example.com/",
      "-H 'Host: other.example.org' -H 'Proxy-Authorization: Basic eA==' -H 'X-Own: 1'",
    );
    expect(requests[0]?.headers).toMatchObject({ host: "one.example.com", "x-own": "1" });
    expect(requests[0]?.headers).not.toHaveProperty("proxy-authorization");
  });

  it("speaks no other scheme, and answers who takes it for a web server", async () => {
    expect(await get("ftp://one.example.com/x", "-x http://127.0.0.1:3128")).toContain("ask it for a whole address");
    expect(await get("http://127.0.0.1:3128/", "--noproxy '*'")).toContain("this is the proxy of the sandbox");
  });

  it("lives on when a sandbox sends it rubbish, cuts and floods its connections", async () => {
    await box().sh(
      `python3 - <<'P'
import os, socket, struct
for turn in range(150):
    s = socket.create_connection(("127.0.0.1", 3128), 5)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    try: s.sendall([b"\\0" * 9000, b"GET http://one.example.com/large HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n", b"CONNECT one.example.com:443 HTTP/1.1\\r\\n\\r\\n" + os.urandom(100), b"GET / HTTP/1.1\\r\\nX: " + b"x" * 40000][turn % 4])
    except OSError: pass
    s.close()
P`,
    );
    expect(await tunnel("one.example.com:443")).toMatch(/200 .*hello/);
    expect(await box().isWell()).toBe(true);
  });

  it("lets npm, git, pip, Node and Python find it", async () => {
    proxy = new SandboxProxy({ reach: new Reach([]), dial });
    const says = "is not allowed: the operator";
    const heard = new Set<string>();
    for (const script of [
      "curl -sS http://curl.example.com",
      "node -e 'fetch(\"http://node.example.com\").then(async (r) => console.log(await r.text()))'",
      "python3 -c 'import urllib.request as u; u.urlopen(\"http://python.example.com\")'",
      "npm view left-pad --fetch-retries=0 --registry=http://npm.example.com",
      "git ls-remote http://git.example.com/x",
      "pip download --retries 0 --index-url https://pip.example.com/simple x",
    ])
      await sh(`${script} 2>&1 | tail -c 500`);
    for (const { host, refused } of proxy.traffic.counts()) if (refused > 0) heard.add(host.split(".")[0] ?? "");
    expect([...heard].sort()).toEqual(["curl", "git", "node", "npm", "pip", "python"]);
    expect(await get("http://curl.example.com")).toContain(says);
  });
});
