import type { ShownImage } from "../../adapters/model/images.ts";
import type { RoomId } from "../../base/lib/ids.ts";
import { layout } from "../../base/prompt/layout.ts";
import { Told, updateOf } from "../../base/prompt/update.ts";
import type { AgentSettings } from "../../domain/agents/settings.ts";
import type { Sight } from "../sight/view.ts";
import { Exchange, type StepPrompt } from "./exchange.ts";

/**
 * Messages that the steps of one turn send to the model. In the layout `cacheable` each step is appended to the render of
 * the first. A new render replaces them when that is impossible: something in it was redacted, a message that the turn
 * works on was edited, other people are in the room, a wall has closed, or no more fits. In the layout `seed` every step
 * has its own render.
 */
export class Thread extends Exchange {
  readonly #settings: AgentSettings;
  /** For whom the render was made. */
  #audience: string | undefined;
  /** Rooms of which it shows more than that they are there. */
  #open: ReadonlySet<RoomId> = new Set();
  /** See `Sight`. */
  #changes = 0;
  #told = new Told();
  /** Images that were shown. Two may have the same label: the page was looked at again. */
  #images = new Set<ShownImage>();

  constructor(settings: AgentSettings) {
    super(settings.approxContextCharsMax);
    this.#settings = settings;
  }

  /**
   * Makes the messages of step `n`; `images` belong to what is new in the turn. Throws a UserError where the context is
   * too small for anything.
   */
  next(n: number, sight: Sight, images: readonly ShownImage[]): StepPrompt {
    const audience = sight.audience.join(" ");
    const isClosed = sight.world.rooms.some((room) => room.isClosed && this.#open.has(room.roomId));
    const isSame = this.#audience === audience && this.#changes === sight.changes;
    if (this.#settings.layout === "cacheable" && isSame && !isClosed && !sight.wasEmptied) {
      const update = updateOf(sight.world, this.#told);
      const fresh = images.filter((image) => !this.#images.has(image));
      const told = { role: "user", content: update?.text ?? "", images: fresh } as const;
      const prompt = this.goOn(update || fresh.length > 0 ? told : undefined, update?.eventIds);
      for (const image of prompt ? fresh : []) this.#images.add(image);
      if (prompt) return prompt;
    }
    const { system, user, borders, eventIds, waiting } = layout(sight.world, this.#settings.layout);
    this.#told = new Told();
    this.#told.take(sight.world);
    for (const eventId of waiting) this.#told.events.delete(eventId);
    this.#images = new Set(images);
    this.#open = new Set(sight.world.rooms.filter((room) => !room.isClosed).map((room) => room.roomId));
    this.#audience = audience;
    this.#changes = sight.changes;
    const messages = [
      { role: "system", content: system },
      { role: "user", content: user, borders, images },
    ] as const;
    return { ...this.begin(n, messages, eventIds), waiting };
  }
}
