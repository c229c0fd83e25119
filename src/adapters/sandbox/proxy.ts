import { lookup } from "node:dns";
import { createServer, type IncomingMessage, request, type Server, type ServerResponse } from "node:http";
import { connect, isIP, type Socket, type TcpNetConnectOpts } from "node:net";
import type { Duplex } from "node:stream";
import { UserError } from "../../base/lib/errors.ts";
import { doorOf, type LookupAll, OpenDoors, pinnedLookup, refusalOfDoor } from "../../base/lib/public-address.ts";
import type { Reach } from "./reach.ts";
import { Traffic } from "./traffic.ts";

/** Port of a sandbox's loopback on which its proxy listens. */
export const proxyPort = 3128;

const url = `http://127.0.0.1:${proxyPort}`;

/** Environment by which programs in a sandbox find the proxy: curl, git, npm, pip, Node.js, Python. */
export const proxyEnvironment: Readonly<Record<string, string>> = {
  http_proxy: url,
  https_proxy: url,
  HTTP_PROXY: url,
  HTTPS_PROXY: url,
  no_proxy: "localhost,127.0.0.1,::1",
  NO_PROXY: "localhost,127.0.0.1,::1",
  NODE_USE_ENV_PROXY: "1",
};

export interface ProxyOptions {
  readonly reach: Pick<Reach, "has">;
  /** Places that are reached although they are not public. Default: none. */
  readonly doors?: OpenDoors;
  /** Default: the machine's resolver. */
  readonly lookupAll?: LookupAll;
  /** Default: `net.connect`. */
  readonly dial?: (options: TcpNetConnectOpts) => Socket;
}

/** The sandbox may not have this connection. */
class Refused extends UserError {}

const headersMs = 10_000;
const silentMs = 300_000;
const connectMs = 15_000;
const headerBytes = 16_384;
const connectionsMost = 64;

/** Fields that are about the connection to the proxy, and about nobody behind it. */
const hops = [
  ...["connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection"],
  ...["te", "trailer", "upgrade"],
];

const noDoors = new OpenDoors([]);

/**
 * The way out of one sandbox: HTTP, and whatever goes through CONNECT, to hosts that are allowed. Only names are taken, and
 * only ports 80 and 443. A name is resolved once, and the very address that was looked at is dialled; one that is not
 * public is refused.
 */
export class SandboxProxy {
  readonly traffic = new Traffic();
  readonly #reach: Pick<Reach, "has">;
  readonly #doors: OpenDoors;
  readonly #lookup: ReturnType<typeof pinnedLookup>;
  readonly #dial: (options: TcpNetConnectOpts) => Socket;
  readonly #server: Server;
  #connections = 0;

  constructor({ reach, doors = noDoors, lookupAll = lookup, dial = connect }: ProxyOptions) {
    this.#reach = reach;
    this.#doors = doors;
    this.#lookup = pinnedLookup(lookupAll);
    this.#dial = dial;
    this.#server = createServer(
      { maxHeaderSize: headerBytes, headersTimeout: headersMs, requestTimeout: 0, keepAliveTimeout: headersMs },
      (asked, answer) => this.#forward(asked, answer),
    );
    this.#server.on("connect", (asked: IncomingMessage, stream: Duplex, head: Buffer) =>
      this.#tunnel(asked.url ?? "", stream, head),
    );
    this.#server.on("clientError", (_error, stream: Duplex) => stream.destroy());
  }

  /** Takes a connection that was made inside of the sandbox. */
  serve(connection: Duplex): void {
    connection.on("error", () => {});
    if (this.#connections >= connectionsMost) {
      connection.destroy();
      return;
    }
    this.#connections++;
    connection.once("close", () => this.#connections--);
    this.#server.emit("connection", connection);
  }

  /** Connects a TCP stream with a host, whatever is said on it. */
  #tunnel(target: string, stream: Duplex, head: Buffer): void {
    let far: Socket | undefined;
    stream.on("error", () => far?.destroy());
    stream.on("close", () => far?.destroy());
    const refuse = (error: unknown): void => {
      const { status, says } = refusalOf(error);
      const text = `${says}\n`;
      // Some programs show nothing but the first line.
      stream.end(
        `HTTP/1.1 ${status} ${says.replace(/[^ -~]/g, "?")}\r\nContent-Type: text/plain\r\nContent-Length: ${Buffer.byteLength(text)}\r\nConnection: close\r\n\r\n${text}`,
      );
    };
    try {
      const [, host = "", port = ""] = /^([^:[\]/@\s]+):(\d{1,5})$/.exec(target) ?? [];
      if (host === "") throw new Refused("the proxy takes a host's name and a port: name:443");
      const name = this.#check(host, Number(port));
      far = this.#open(name, Number(port));
      const way = far;
      way.on("error", (error) => (way.connecting || way.bytesRead === 0 ? refuse(error) : stream.destroy()));
      way.on("connect", () => {
        stream.write("HTTP/1.1 200 Connection established\r\n\r\n");
        if (head.length > 0) way.write(head);
        way.pipe(stream);
        stream.pipe(way);
      });
    } catch (error) {
      refuse(error);
    }
  }

  /** Passes a plain request on. The host is the one of its address, whatever its fields say. */
  #forward(asked: IncomingMessage, answer: ServerResponse): void {
    const refuse = (error: unknown): void => {
      const { status, says } = refusalOf(error);
      if (answer.headersSent) answer.destroy();
      else answer.writeHead(status, { "content-type": "text/plain", connection: "close" }).end(`${says}\n`);
    };
    try {
      const target = URL.parse(asked.url ?? "");
      if (target?.protocol !== "http:")
        throw new Refused("this is the proxy of the sandbox: ask it for a whole address, such as http://example.org/");
      const { host, port } = doorOf(target);
      const name = this.#check(host, port);
      const kept = Object.entries(asked.headers).filter(([field]) => !hops.includes(field));
      const onward = request({
        method: asked.method,
        path: `${target.pathname}${target.search}`,
        headers: { ...Object.fromEntries(kept), host: target.host, connection: "close" },
        createConnection: () => this.#open(name, port),
      });
      onward.on("response", (answered) => {
        const fields = Object.entries(answered.headers).filter(([field]) => !hops.includes(field));
        answer.writeHead(answered.statusCode ?? 502, Object.fromEntries(fields));
        answered.on("error", () => answer.destroy());
        answered.pipe(answer);
      });
      onward.on("error", refuse);
      answer.on("close", () => onward.destroy());
      asked.on("error", () => onward.destroy());
      asked.pipe(onward);
    } catch (error) {
      refuse(error);
    }
  }

  /** Returns the name as it is compared and resolved. */
  #check(host: string, port: number): string {
    const name = host.toLowerCase().replace(/\.$/, "");
    if (this.#doors.has({ host: name, port })) return name;
    try {
      if (isIP(name) !== 0 || /^[0-9.]+$/.test(name) || /^0x/.test(name))
        throw new Refused(`${host} is an address: only names of hosts are allowed`);
      if (!this.#reach.has(name))
        throw new Refused(`${name} is not allowed: the operator allows hosts in sandbox.network of config.yaml`);
      const refusal = refusalOfDoor({ host: name, port }, noDoors);
      if (refusal !== undefined) throw new Refused(refusal);
      return name;
    } catch (error) {
      this.traffic.add(name.slice(0, 253), { refused: 1 });
      throw error;
    }
  }

  #open(host: string, port: number): Socket {
    const isOpened = this.#doors.has({ host, port });
    const far = this.#dial({ host, port, ...(!isOpened && { lookup: this.#lookup }) });
    far.setTimeout(connectMs, () => far.destroy(new Error(`${host} does not answer`)));
    far.once("connect", () => far.setTimeout(silentMs));
    this.traffic.follow(host, far);
    return far;
  }
}

/** Answer in words; where the machine's network says something, its words stay here. */
const refusalOf = (error: unknown): { readonly status: number; readonly says: string } => {
  if (error instanceof UserError) return { status: 403, says: `Clevernet: ${error.message}` };
  const code = error instanceof Error && "code" in error ? ` (${String(error.code)})` : "";
  return { status: 502, says: `Clevernet: the host cannot be reached${code}` };
};
