import { createChatModel } from "../../adapters/model/chat.ts";
import { ModelError } from "../../adapters/model/failure.ts";
import { messageOf } from "../../base/lib/errors.ts";
import { silentLog } from "../../base/lib/log.ts";
import { type ModelChoice, type ModelKind, modelFor } from "../../domain/agents/models.ts";
import { parseAgentSettings } from "../../domain/agents/settings.ts";
import { modelsOf } from "../config/config.ts";
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

/**
 * Checks that each configured model answers with what is set of it, and calls a tool when it is told to, if it is to
 * think: a few tokens each.
 */
export async function* checkModels({ config, clock }: CheckSetting): AsyncGenerator<Finding> {
  const { baseUrl, apiKey = "" } = config.model;
  const refused: Finding[] = [];
  const model = createChatModel({
    baseUrl,
    apiKey,
    clock,
    log: silentLog,
    attempts: 1,
    idleTimeoutMs: 30_000,
    onRefused: ({ model, ...options }, option) =>
      refused.push(
        warning(
          "model",
          `${model} refuses ${option} ${options[option]}, and is asked without it.`,
          `Take ${option} out of models in config.yaml${option === "temperature" ? ", or set it to null" : ""}.`,
        ),
      ),
  });
  for (const { kind, ...choice } of choicesIn(config)) {
    const each = choice.model;
    try {
      const { toolCalls } = await model.complete(
        {
          ...choice,
          messages: [{ role: "user", content: `Call the function ${tool.name} now, with ready set to true.` }],
          tools: [tool],
          mayCallInParallel: true,
          sessionId: "check",
        },
        AbortSignal.timeout(patienceMs),
      );
      if (kind === "read") yield ok("model", `${each} answers.`);
      else if (toolCalls.some((call) => call.name === tool.name)) yield ok("model", `${each} answers and calls tools.`);
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
    yield* refused.splice(0);
  }
}

/** The models that are asked, each once for the effort that is set of it: those that think before those that only read. */
function choicesIn(config: CheckSetting["config"]): (ModelChoice & { readonly kind: ModelKind })[] {
  const everybody = [{ settings: parseAgentSettings({}, "nobody's agent.json") }, ...config.agents];
  const choices = (["think", "see", "read"] as const).flatMap((kind) =>
    everybody.map((agent) => ({ kind, ...modelFor(agent, kind, modelsOf(config)) })),
  );
  const asked = choices.map(({ model, reasoning, maxTokens }) => JSON.stringify([model, reasoning, maxTokens]));
  return choices.filter((_, index) => asked.indexOf(asked[index] ?? "") === index);
}
