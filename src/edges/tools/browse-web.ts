import { z } from "zod";
import { HOME } from "../../base/lib/ids.ts";
import { unwrapped } from "../../base/lib/web-address.ts";
import { type PageArguments, webTaint } from "../../domain/desk/page-source.ts";
import { postPicture } from "../../engine/operations/post-picture.ts";
import { defineTool } from "../../engine/operations/tool.ts";

export const tool = defineTool({
  name: "BrowseWeb",
  set: "web",
  command: "browse",
  examples: ["https://example.org/"],
  topic: "web",
  description: "Opens a page of the web, a feed or a PDF in a window; shows you an image.",
  help: "Opens a page of the web, a feed or a PDF as text, in a window on the agent's desk; an image is shown to the agent.",
  wording: "Open {url}",
  kind: "read",
  runsBeside: false,
  isRepeatable: true,
  // To ask for an address is to send it: one that the agent has made up may carry what it knows.
  reachesOutside: async ({ url }, { addresses, agent, roomId }) =>
    !(await addresses.isKnown({ agent: agent.name, roomId }, url)),
  input: z.object({
    url: z.string().trim().overwrite(unwrapped).min(1).max(4_000).meta({ help: "Its address" }),
    mode: z
      .enum(["markdown", "html"])
      .default("markdown")
      .meta({ description: "html: its source", help: "markdown: the text; html: the source of the page" }),
    screenshot: z
      .boolean()
      .meta({ description: "Shows it to you, too", help: "A picture of the page as well, as a browser shows it" })
      .optional(),
  }),
  async run({ url, mode, screenshot }, context) {
    const { by, roomId, windows } = context;
    const {
      images = [],
      said,
      shown,
    } = await windows.open({
      srcType: "page",
      src: url,
      arguments: JSON.stringify({ mode, ...(screenshot && { screenshot }) } satisfies PageArguments),
    });
    const [picture] = screenshot && by === "person" && roomId !== HOME ? images : [];
    return {
      result: by === "person" && shown ? shown : said,
      taint: [webTaint(url)],
      images,
      // The window is answered besides.
      ...(picture && { outbox: (await postPicture(picture.bytes, url, context)).outbox ?? [] }),
    };
  },
});
