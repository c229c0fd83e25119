import { createChatModel } from "../../adapters/model/chat.ts";
import { ModelError } from "../../adapters/model/failure.ts";
import { messageOf } from "../../base/lib/errors.ts";
import { silentLog } from "../../base/lib/log.ts";
import { type CheckSetting, type Finding, failed, ok, warning } from "./check-finding.ts";

const patienceMs = 60_000;
const tool = {
  name: "report_ready",
  description: "Reports that you are ready.",
  parameters: { type: "object", properties: { ready: { type: "boolean" } }, required: ["ready"] },
};

const remedies = {
  unavailable: "Start it, or correct model.baseUrl in config.yaml.",
  refused: "Choose another model in config.yaml: this one does not take what agents send.",
  "out of money": "Add credit with the provider, or choose another model.",
  misconfigured: "Correct baseUrl, name and key of model in config.yaml.",
} as const;

/** Checks that each configured model answers, and calls a tool when it is told to: a few tokens each. */
export async function* checkModels({ config, clock }: CheckSetting): AsyncGenerator<Finding> {
  const { baseUrl, apiKey = "", name } = config.model;
  const names = new Set([name, ...config.agents.flatMap(({ settings }) => settings.model ?? [])]);
  const model = createChatModel({ baseUrl, apiKey, clock, log: silentLog, attempts: 1, idleTimeoutMs: 30_000 });
  for (const each of names) {
    try {
      const { toolCalls } = await model.complete(
        {
          model: each,
          temperature: undefined,
          messages: [{ role: "user", content: `Call the function ${tool.name} now, with ready set to true.` }],
          tools: [tool],
          parallelToolCalls: true,
          sessionId: "check",
        },
        AbortSignal.timeout(patienceMs),
      );
      if (toolCalls.some((call) => call.name === tool.name)) yield ok("model", `${each} answers and calls tools.`);
      else {
        yield warning(
          "model",
          `${each} answers, but did not call the tool that it was told to call.`,
          "Choose a model that knows tool calls; for one that does not, set answer: text for its agents.",
        );
      }
    } catch (error) {
      const remedy = error instanceof ModelError ? remedies[error.kind] : remedies.unavailable;
      yield failed("model", messageOf(error).replace(/ – .*$/, ""), remedy);
    }
  }
}
