import type { Clock } from "./lib/clock.ts";
import type { Log } from "./lib/log.ts";
import type { LiveConfig } from "./live-config.ts";
import { type ChatModel, createChatModel } from "./model/chat.ts";

/** The model server that the configuration names at the time of each call. */
export const liveModel = (live: LiveConfig, clock: Clock, log: Log): ChatModel => {
  const make = () => {
    const { baseUrl, apiKey } = live.current.model;
    return { baseUrl, apiKey, model: createChatModel({ baseUrl, apiKey: apiKey ?? "", clock, log }) };
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
