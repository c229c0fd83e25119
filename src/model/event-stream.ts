import type { IncomingMessage } from "node:http";
import { createParser } from "eventsource-parser";
import { after } from "../lib/clock.ts";
import { isObject } from "../lib/json.ts";
import { StreamError } from "./completion.ts";
import { ConnectionError, ServerError } from "./server.ts";

/** What stands in the place of a chunk after the last one. */
const end = "[DONE]";
/** How long a server may take to close a stream that has said all, so that its connection can be used again. */
const closingMs = 1_000;
const shownMax = 300;

/**
 * Hands over the chunks of a streamed answer until its end. `heard` is called for whatever arrives, comments too.
 * Throws a ConnectionError, a ServerError for an error that the server reports in the stream, a StreamError for what is
 * no stream of JSON, or what `take` throws.
 */
export const readEvents = async (
  response: IncomingMessage,
  heard: () => void,
  take: (chunk: unknown) => void,
): Promise<void> => {
  let beginning = "";
  let events = 0;
  let ended = false;
  const parser = createParser({
    onEvent: ({ event, data }) => {
      ended ||= data === end;
      if (ended) return;
      events += 1;
      const chunk = chunkOf(data);
      if (event === "error" || (isObject(chunk) && chunk.error)) throw new ServerError(undefined, chunk, response);
      take(chunk);
    },
  });
  try {
    for await (const piece of piecesOf(response)) {
      heard();
      if (beginning.length < shownMax) beginning += piece;
      parser.feed(piece);
      if (ended) break;
    }
  } finally {
    if (ended) leave(response);
    else response.destroy();
  }
  if (events === 0) throw new StreamError(`no event stream, but: ${beginning.slice(0, shownMax)}`);
};

async function* piecesOf(response: IncomingMessage): AsyncGenerator<string> {
  try {
    yield* response.setEncoding("utf8").iterator({ destroyOnReturn: false });
  } catch (error) {
    throw new ConnectionError(error);
  }
}

const chunkOf = (data: string): unknown => {
  try {
    return JSON.parse(data);
  } catch {
    throw new StreamError("a chunk that is no JSON");
  }
};

const leave = (response: IncomingMessage): void => {
  const forget = after(closingMs, () => response.destroy());
  response
    .on("error", () => {})
    .once("close", forget)
    .resume();
};
