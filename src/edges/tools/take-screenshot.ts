import { z } from "zod";
import { UserError } from "../../base/lib/errors.ts";
import { HOME } from "../../base/lib/ids.ts";
import type { Browsers } from "../../domain/sandboxes/browsers.ts";
import { sandboxTaint } from "../../domain/sandboxes/taint.ts";
import { postPicture } from "../../engine/operations/post-picture.ts";
import { defineTool } from "../../engine/operations/tool.ts";

type Picture = Awaited<ReturnType<Browsers["shoot"]>>;

const timeoutMs = 30_000;
const ownHosts = /^(?:localhost|127(?:\.\d+){3}|\[::1\]|0\.0\.0\.0)$/;

export const tool = defineTool({
  name: "take_screenshot",
  set: "sandbox",
  command: "shot",
  examples: ["http://localhost:3000"],
  topic: "sandbox",
  description:
    "Shows you, and posts, a picture of a web page; the computer's own servers are at http://localhost:PORT.",
  help: "Posts a picture of a web page as a browser in the computer of this conversation shows it: of a server that runs there, or of a host that the operator allows.",
  wording: "Take a picture of {url}",
  kind: "read",
  isRepeatable: true,
  runsBeside: false,
  check: (_, { files }) => files.requireOpenComputer(),
  // To ask a host for a page is to tell it something.
  reachesOutside: ({ url }) => !isOwn(url),
  input: z.object({
    width: z
      .int32()
      .min(100)
      .max(4_000)
      .meta({ description: "Pixels; default 1280", help: "Its width in pixels" })
      .optional(),
    height: z.int32().min(100).max(4_000).meta({ description: "Default 720", help: "Its height in pixels" }).optional(),
    fullPage: z.boolean().meta({ description: "All of a long page", help: "All of a page that is longer" }).optional(),
    wait: z
      .number()
      .min(0)
      .max(20)
      .meta({ description: "Seconds after loading", help: "Seconds to wait once it is loaded" })
      .optional(),
    waitFor: z
      .string()
      .trim()
      .min(1)
      .max(500)
      .meta({ description: "CSS selector to wait for", help: "What must be seen before, as a CSS selector" })
      .optional(),
    url: z.string().trim().min(1).max(2_000).meta({ description: "http or https", help: "The address of the page" }),
  }),
  async run({ fullPage = false, height = 720, url, wait = 0, waitFor, width = 1_280 }, context) {
    const { agent, browsers, files, roomId, signal } = context;
    const sources = await files.sourcesOf(sandboxTaint);
    const picture = await browsers.shoot(
      { agent: agent.name, roomId },
      { url: addressOf(url), width, height, isFullPage: fullPage, waitMs: wait * 1_000, waitFor, timeoutMs },
      signal,
    );
    return {
      result: describe(picture),
      isVerbatim: true,
      sources,
      taint: [sandboxTaint],
      images: [{ label: `screenshot of ${url}`, bytes: picture.image }],
      ...(roomId !== HOME && (await postPicture(picture.image, picture.address, context))),
    };
  },
});

/** The address as a browser takes it. Throws a `UserError` for what is none, and for files of the computer. */
function addressOf(text: string): string {
  const url = URL.parse(text);
  if (!url)
    throw new UserError(`${JSON.stringify(text)} is no address: write all of it, such as http://localhost:3000/.`);
  if (url.protocol !== "http:" && url.protocol !== "https:")
    throw new UserError(
      `Pictures are taken of http and https, and not of ${url.protocol} Serve a file first, such as with run_command \`npx serve\` or \`python3 -m http.server\`.`,
    );
  if (url.username !== "" || url.password !== "")
    throw new UserError("The address must hold no user name or password.");
  return url.href;
}

const isOwn = (text: string): boolean => ownHosts.test(URL.parse(text)?.hostname ?? "");

/** Tells what came besides the picture, in lines. */
function describe({ address, isCut, more, notices, status, title }: Picture): string {
  return [
    `${address}: ${status === null ? "no status" : `status ${status}`}, ${title === "" ? "without a title" : `title ${JSON.stringify(title)}`}`,
    ...(isCut ? ["The page is longer than a picture may be: its end is cut."] : []),
    ...notices.map(({ kind, text }) => `${kind}: ${text}`),
    ...(more > 0 ? [`and ${more} more from the console`] : []),
  ].join("\n");
}
