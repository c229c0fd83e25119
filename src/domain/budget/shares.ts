import type { ChatMessage, ChatRequest } from "../../adapters/model/types.ts";
import { imageTokens } from "../../adapters/model/usage.ts";
import type { Share } from "../tables/budgets.ts";

/** A part of a prompt: a message, or the list of tools. */
interface Part {
  readonly role: Share["role"];
  readonly what: object;
  /** About how many tokens it has: characters / 4. */
  readonly weight: number;
}

/**
 * Shares of the messages of one exchange. Providers count only whole prompts: what is new in one has what the parts
 * that were counted before leave of it, and parts that are new together divide this by their length.
 */
export class ShareMeter {
  #known = new WeakMap<object, number>();

  /** Measures a call that was answered; `promptTokens` is what its provider has counted. */
  measure({ messages, tools }: Pick<ChatRequest, "messages" | "tools">, promptTokens: number): Share[] {
    const parts: Part[] = messages.map((message) => ({ role: message.role, what: message, weight: weightOf(message) }));
    if (tools.length > 0) parts.unshift({ role: "tools", what: tools, weight: JSON.stringify(tools).length / 4 });
    const fresh = parts.filter(({ what }) => !this.#known.has(what));
    const rest = parts.reduce((left, { what }) => left - (this.#known.get(what) ?? 0), promptTokens);
    if (fresh.length > 0 && rest > 0) this.#divide(rest, fresh);
    else if (rest !== 0 || fresh.length > 0) this.#divide(promptTokens, parts);
    return parts.map(({ role, what }) => ({ role, tokens: this.#known.get(what) ?? 0 }));
  }

  /** Whole tokens, which are `tokens` together. */
  #divide(tokens: number, parts: readonly Part[]): void {
    const sum = parts.reduce((total, { weight }) => total + weight, 0);
    // A frame is all that messages without text have: one costs as much as another.
    const [whole, least] = sum > 0 ? [sum, 0] : [parts.length, 1];
    let before = 0;
    let given = 0;
    for (const { what, weight } of parts) {
      before += weight + least;
      const upTo = Math.round((tokens * before) / whole);
      this.#known.set(what, upTo - given);
      given = upTo;
    }
  }
}

const weightOf = (message: ChatMessage): number => {
  const images = "images" in message ? (message.images?.length ?? 0) : 0;
  const { toolCalls = [], reasoningDetails = [] } = message.role === "assistant" ? message : {};
  const calls = toolCalls.reduce((chars, call) => chars + call.name.length + call.arguments.length, 0);
  const thoughts = reasoningDetails.length > 0 ? JSON.stringify(reasoningDetails).length : 0;
  return (message.content.length + calls + thoughts) / 4 + images * imageTokens;
};
