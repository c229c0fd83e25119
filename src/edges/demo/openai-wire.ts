import { createServer, type IncomingHttpHeaders, type ServerResponse } from "node:http";
import { text } from "node:stream/consumers";
import { z } from "zod";

const part = z.union([
  z.object({ type: z.literal("text"), text: z.string() }),
  z.object({ type: z.literal("image_url"), image_url: z.object({ url: z.string() }) }),
]);
const message = z
  .looseObject({ role: z.string(), content: z.union([z.string(), z.array(part)]) })
  .transform(({ content, ...rest }) => ({ ...rest, ...contentOf(content) }));

/** The texts of a message, and the URLs of its images. */
const contentOf = (content: string | readonly z.infer<typeof part>[]) => {
  if (typeof content === "string") return { content, images: [] };
  const texts = content.flatMap((one) => (one.type === "text" ? [one.text] : []));
  const images = content.flatMap((one) => (one.type === "image_url" ? [one.image_url.url] : []));
  return { content: texts.join("\n\n"), images };
};

const chatBody = z.looseObject({
  model: z.string(),
  messages: z.array(message),
  tools: z
    .array(
      z.object({
        function: z.object({
          name: z.string(),
          description: z.string(),
          parameters: z.record(z.string(), z.unknown()),
        }),
      }),
    )
    .default([]),
});

/** Fields that are read of a chat completions request; all others are kept as they came. */
export type ChatBody = z.infer<typeof chatBody>;
export type OfferedTool = ChatBody["tools"][number]["function"];

/** A part of an answer, as it travels in one chunk. `tool_calls` are whole or, by index, pieces of calls. */
export interface Delta {
  readonly content?: string;
  readonly reasoning_content?: string;
  readonly tool_calls?: readonly {
    readonly index: number;
    readonly id?: string;
    readonly type?: "function";
    readonly function: { readonly name?: string; readonly arguments?: string };
  }[];
}

export const eventStream = { "content-type": "text/event-stream", "cache-control": "no-cache" };

const event = (data: unknown): string => `data: ${JSON.stringify(data)}\n\n`;
const envelope = (model: string) => ({ id: "chatcmpl-1", object: "chat.completion.chunk", created: 0, model });

/** Server-sent events of one streamed answer. */
export const chunks = {
  delta: (model: string, delta: Delta): string =>
    event({ ...envelope(model), choices: [{ index: 0, delta, finish_reason: null }] }),
  finish: (model: string, reason: string): string =>
    event({ ...envelope(model), choices: [{ index: 0, delta: {}, finish_reason: reason }] }),
  usage: (model: string, usage: object): string => event({ ...envelope(model), choices: [], usage }),
  done: "data: [DONE]\n\n",
};

/** Answers with an error as OpenAI words it. */
export const refuse = (response: ServerResponse, status: number, message: string, headers = {}): void => {
  response.writeHead(status, { "content-type": "application/json", ...headers });
  response.end(JSON.stringify({ error: { message, type: "error", code: null } }));
};

export interface OpenAiServer {
  /** The base URL for clients: ends in `/v1`. */
  readonly url: string;
  /** Cuts all connections. */
  stop(): Promise<void>;
}

export interface OpenAiServerOptions {
  /** 0 for any free one. */
  readonly port: number;
  /** Named by `/v1/models`. */
  readonly model: string;
  /** Answers one request for a chat completion. What it throws is answered as 500. */
  answer(body: ChatBody, response: ServerResponse, headers: IncomingHttpHeaders): Promise<void>;
}

/** The two routes of an OpenAI-compatible server that Clevernet needs, on the loopback interface. */
export const serveOpenAi = async ({ port, model, answer }: OpenAiServerOptions): Promise<OpenAiServer> => {
  const server = createServer((request, response) => {
    const handle = async () => {
      if (request.url === "/v1/models") {
        response.writeHead(200, { "content-type": "application/json" });
        response.end(JSON.stringify({ object: "list", data: [{ id: model, object: "model" }] }));
      } else if (request.url === "/v1/chat/completions" && request.method === "POST") {
        const body = chatBody.safeParse(JSON.parse(await text(request)));
        if (body.success) await answer(body.data, response, request.headers);
        else refuse(response, 400, `not a chat completions request: ${z.prettifyError(body.error)}`);
      } else {
        refuse(response, 404, `no route ${request.method} ${request.url}`);
      }
    };
    handle().catch((error: unknown) => {
      if (response.headersSent) response.destroy();
      else refuse(response, 500, String(error));
    });
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, "127.0.0.1", resolve);
  });
  const address = server.address();
  const listening = typeof address === "object" && address !== null ? address.port : port;
  return {
    url: `http://127.0.0.1:${listening}/v1`,
    stop: async () => {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      server.closeAllConnections();
      await closed;
    },
  };
};
