import { layout } from "../context/layout.ts";
import { fitted } from "../context/list-part.ts";
import { Told, updateOf } from "../context/update.ts";
import type { Render } from "../database/renders.ts";
import type { EventId, RoomId } from "../lib/ids.ts";
import type { Element } from "../lmml/element.ts";
import { render } from "../lmml/render.ts";
import type { Completion, ToolCall } from "../model/completion.ts";
import type { ShownImage } from "../model/images.ts";
import type { ChatMessage } from "../model/request.ts";
import type { AgentSettings } from "./settings.ts";
import type { Sight } from "./view.ts";

/** The most that the result of one call takes of `approxContextCharsMax`. */
const resultShare = 0.2;

/** What a step is sent, and what of it is kept as its render. */
export interface StepPrompt {
  readonly messages: readonly ChatMessage[];
  readonly kept: Pick<Render, "system" | "prompt" | "eventIds">;
}

/** The render to which steps are appended, and for whom it was made. */
interface Base {
  readonly n: number;
  readonly messages: readonly ChatMessage[];
  readonly audience: string;
  /** Rooms of which more was shown than that they are there. */
  readonly open: ReadonlySet<RoomId>;
}

/**
 * What the steps of one turn are sent. In the layout `cacheable` they are appended to the render of the first, so that
 * nothing that was sent changes; there is a new render where that cannot be: something in it was redacted, other people
 * are in the room, a wall has closed, or no more fits. In the layout `seed` every step has its own.
 */
export class Thread {
  readonly #settings: AgentSettings;
  #base: Base | undefined;
  #appended: ChatMessage[] = [];
  /** Messages that are in the render of an earlier step. */
  #kept = 0;
  #told = new Told();
  readonly #callIds = new Set<string>();
  /** Labels of the images that were shown. */
  #images = new Set<string>();

  constructor(settings: AgentSettings) {
    this.#settings = settings;
  }

  /** The step whose render is in use. */
  get base(): number | undefined {
    return this.#base?.n;
  }

  /**
   * What step `n` is sent; `images` belong to what is new in the turn. Throws a UserError where the context is too
   * small for anything.
   */
  next(n: number, sight: Sight, images: readonly ShownImage[]): StepPrompt {
    const { layout: name, approxContextCharsMax } = this.#settings;
    const audience = sight.audience.join(" ");
    const closed = sight.world.rooms.some((room) => room.closed && this.#base?.open.has(room.roomId));
    if (name === "cacheable" && this.#base?.audience === audience && !closed && !sight.emptied) {
      const update = updateOf(sight.world, this.#told);
      const fresh = images.filter(({ label }) => !this.#images.has(label));
      const told = { role: "user", content: update?.text ?? "", images: fresh } as const;
      const messages = update || fresh.length > 0 ? [...this.#appended, told] : this.#appended;
      if (charsOf([...this.#base.messages, ...messages]) <= approxContextCharsMax) {
        this.#appended = messages;
        for (const { label } of fresh) this.#images.add(label);
        const prompt = this.#appended.slice(this.#kept).map(asText).join("\n\n");
        this.#kept = this.#appended.length;
        const kept = { system: `(as in step ${this.#base.n})`, prompt, eventIds: update?.eventIds ?? noEvents };
        return { messages: [...this.#base.messages, ...this.#appended], kept };
      }
    }
    const { system, user, borders, eventIds } = layout(sight.world, name);
    const messages = [
      { role: "system", content: system },
      { role: "user", content: user, borders, images },
    ] as const;
    this.#told = new Told();
    this.#told.take(sight.world);
    this.#images = new Set(images.map(({ label }) => label));
    const open = new Set(sight.world.rooms.filter((room) => !room.closed).map((room) => room.roomId));
    this.#base = { n, messages, audience, open };
    this.#appended = [];
    this.#kept = 0;
    return { messages, kept: { system, prompt: user, eventIds } };
  }

  /** The calls with ids that are different from those of earlier steps: some servers count from 0 in each answer. */
  unique(calls: readonly ToolCall[], n: number): ToolCall[] {
    return calls.map((call) => {
      const id = this.#callIds.has(call.id) ? `${call.id}_${n}` : call.id;
      this.#callIds.add(id);
      return { ...call, id };
    });
  }

  answered({ text, thought, reasoningDetails }: Completion, toolCalls: readonly ToolCall[]): void {
    this.#append({
      role: "assistant",
      content: text === "" && toolCalls.length === 0 ? thought || "…" : text,
      toolCalls,
      ...(reasoningDetails.length > 0 && { reasoningDetails }),
    });
  }

  /** `result` is the `functionResult`. */
  returned(toolCallId: string, result: Element): void {
    const most = Math.floor(this.#settings.approxContextCharsMax * resultShare);
    this.#append({ role: "tool", toolCallId, content: render(fitted(result, most, 0)) });
  }

  /** After a takeover the steps of before are shown by the next render. */
  #append(message: ChatMessage): void {
    if (this.#base) this.#appended = [...this.#appended, message];
  }
}

const noEvents: readonly EventId[] = [];

const charsOf = (messages: readonly ChatMessage[]): number =>
  messages.reduce(
    (chars, message) =>
      chars + message.content.length + (message.role === "assistant" ? JSON.stringify(message.toolCalls).length : 0),
    0,
  );

/** A message as people read it. */
const asText = (message: ChatMessage): string => {
  const calls = message.role === "assistant" ? message.toolCalls : [];
  const lines = [message.content, ...calls.map((call) => `${call.name} ${call.arguments}`)];
  return [`[${message.role}]`, ...lines.filter((line) => line !== "")].join("\n");
};
