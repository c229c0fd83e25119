import { type ChatModel, type ChatModelOptions, createChatModel } from "../../adapters/model/chat.ts";
import { digest } from "../../base/lib/ids.ts";
import type { LiveConfig } from "../config/live.ts";

type Rest = Pick<ChatModelOptions, "clock" | "log" | "onRetry" | "onRefused">;

/** The model server that the configuration names at the time of each call. */
export const liveModel = (live: LiveConfig, rest: Rest): ChatModel => {
  const make = () => {
    const { baseUrl, apiKey } = live.current.model;
    return { baseUrl, apiKey, model: createChatModel({ baseUrl, apiKey: apiKey ?? "", ...rest }) };
  };
  let known = make();
  return {
    complete(...call) {
      const { baseUrl, apiKey } = live.current.model;
      if (known.baseUrl !== baseUrl || known.apiKey !== apiKey) known = make();
      return known.model.complete(...call);
    },
  };
};

/** Text for those who run the bridge, and the key under which they are told once. */
export const describeRefusedOption = (
  ...[request, option, words]: Parameters<NonNullable<ChatModelOptions["onRefused"]>>
): [text: string, key: string] => {
  const { model, [option]: value } = request;
  const remedy = option === "temperature" ? "set it to `null`" : "take it out";
  const text = `The model ${model} refuses \`${option}: ${value}\`, and is asked without it: ${words}\n\nTo be rid of this, ${remedy} where the model is chosen, in \`models\` of config.yaml or of the agent.`;
  return [text, digest("option refused", model, option, String(value))];
};
