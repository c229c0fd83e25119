import { z } from "zod";
import { type ModelOptions, reasoningEfforts } from "../../adapters/model/types.ts";
import { section } from "../../base/lib/problems.ts";

const modelName = "the name of a model, such as google/gemini-2.5-flash";
const degrees = "a number from 0 to 2, or null to send none";
const efforts = `one of ${reasoningEfforts.join(", ")}, or a whole number of tokens from 1 to 1000000`;
const tokens = "a whole number of tokens from 1 to 1000000";
const tokensMost = 1_000_000;

/** The field `temperature`, of agents and of models. */
export const temperature = () => z.number(degrees).min(0, degrees).max(2, degrees).nullable();

/** A model, and what is set of it; `otherwise` says which model it is where none is named. */
const choice = (otherwise: string, temperatureOtherwise: string) =>
  section({
    name: z
      .string(modelName)
      .regex(/^\S{1,255}$/, modelName)
      .optional()
      .describe(`Its name. Without it: ${otherwise}.`),
    temperature: temperature()
      .optional()
      .describe(`How freely it chooses its words. \`null\`: nothing is sent. Without it: ${temperatureOtherwise}.`),
    reasoning: z
      .union([z.enum(reasoningEfforts), z.int().min(1).max(tokensMost)], efforts)
      .optional()
      .describe(
        "How hard it thinks before it answers: an effort, or the most tokens of its thoughts (a number is understood by OpenRouter and by few others). Without it: as the provider has it.",
      ),
    maxTokens: z
      .int(tokens)
      .min(1, tokens)
      .max(tokensMost, tokens)
      .optional()
      .describe("Most tokens of one answer, its thoughts included; a longer one is cut off. Without it: no limit."),
  });

/** The field `models`: an agent's own, and those of config.yaml for agents that choose none. Each kind of task is a line. */
export const modelsSection = section({
  think: choice("`model` of the agent, or else `model.name` of config.yaml", "`temperature` of the agent")
    .optional()
    .describe("Model with which agents think."),
  see: choice("the model with which the agent thinks", "`temperature` of the agent")
    .optional()
    .describe("Model that thinks instead in steps that show images. Without it: `think`."),
  read: choice("the model with which the agent thinks", "0")
    .optional()
    .describe("Model that reads long texts for agents: questions about windows, summaries. It may be a fast one."),
});
type Models = Readonly<z.output<typeof modelsSection>>;
export type ModelKind = keyof Models;

/** Models that the configuration names: `name` thinks where nothing else is said. */
export interface ConfiguredModels {
  readonly name: string;
  readonly models: Models;
}

interface Chooser {
  readonly settings: { readonly model: string | null; readonly models: Models; readonly temperature: number | null };
}

/** A model for one kind of task, and what is set of it. */
export interface ModelChoice extends ModelOptions {
  readonly model: string;
}

/** Chooses the model for an agent's task: what the agent says of it counts, then what the configuration says. */
export function modelFor({ settings }: Chooser, kind: ModelKind, { name, models }: ConfiguredModels): ModelChoice {
  const thinks = settings.models.think?.name ?? settings.model ?? models.think?.name ?? name;
  const task = kind === "see" && !settings.models.see && !models.see ? "think" : kind;
  const named = settings.models[task]?.name ?? models[task]?.name ?? thinks;
  const options = settings.models[task] ?? models[task] ?? {};
  const { temperature = task === "read" ? 0 : settings.temperature, reasoning, maxTokens } = options;
  return { model: task === "think" ? thinks : named, temperature: temperature ?? undefined, reasoning, maxTokens };
}
