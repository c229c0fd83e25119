import { z } from "zod";
import { type VideoArguments, videoTaint } from "../../domain/desk/video-source.ts";
import { defineTool } from "../../engine/operations/tool.ts";

export const tool = defineTool({
  name: "YouTube",
  set: "web",
  command: "youtube",
  examples: ["https://youtu.be/aaaaaaaaaaa"],
  topic: "web",
  description: "Opens facts and captions of a YouTube video in a window.",
  wording: "Read the video {video}",
  kind: "read",
  runsBeside: false,
  isRepeatable: true,
  input: z.object({
    captions: z.boolean().default(true).describe("What is said in it, too"),
    language: z
      .string()
      .regex(/^[A-Za-z][\w-]{1,19}$/, "the code of a language, such as en or pt-BR")
      .default("en")
      .describe("Of the captions"),
    video: z.string().trim().min(1).max(300).describe("Address or id"),
  }),
  async run({ video, language, captions }, { by, windows }) {
    const { said, shown } = await windows.open({
      srcType: "video",
      src: video,
      arguments: JSON.stringify({ language, hasCaptions: captions } satisfies VideoArguments),
    });
    return { result: by === "person" && shown ? shown : said, taint: [videoTaint] };
  },
});
