import { type ChatModel, type ChatModelOptions, createChatModel } from "../../adapters/model/chat.ts";
import type { LiveConfig } from "../config/live.ts";

/** The model server that the configuration names at the time of each call. */
export const liveModel = (live: LiveConfig, rest: Pick<ChatModelOptions, "clock" | "log" | "onRetry">): ChatModel => {
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
