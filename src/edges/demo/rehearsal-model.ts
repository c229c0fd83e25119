import { chunks, eventStream, type OpenAiServer, serveOpenAi } from "./openai-wire.ts";
import { rehearsedStep } from "./rehearsal-script.ts";

const model = "rehearsal";

/**
 * An OpenAI-compatible server without a model behind it, for a demonstration without a key: it says what it is, answers
 * where it is spoken to, and uses each tool that it is asked to use by name.
 */
export const startRehearsalModel = ({ port }: { port: number }): Promise<OpenAiServer> =>
  serveOpenAi({
    port,
    model,
    answer: async (body, response) => {
      const { thought, text, call } = rehearsedStep(body);
      const toolCall = call && {
        index: 0,
        id: "call_0",
        type: "function" as const,
        function: { name: call.name, arguments: JSON.stringify(call.arguments) },
      };
      response.writeHead(200, eventStream);
      response.write(chunks.delta(model, { reasoning_content: thought }));
      if (text !== undefined) response.write(chunks.delta(model, { content: text }));
      if (toolCall) response.write(chunks.delta(model, { tool_calls: [toolCall] }));
      response.write(chunks.finish(model, toolCall ? "tool_calls" : "stop"));
      response.end(chunks.done);
    },
  });
