import { render } from "../lmml/render.ts";
import { type Allotment, divide, nothing } from "./budget.ts";
import { cacheable } from "./cacheable.ts";
import { chatInterface, partsOf, systemMessage, wantedOf } from "./chat-interface.ts";
import { eventIdsIn, frameTooLarge } from "./layout-frame.ts";
import { stateBlock, stateTexts, wantedState } from "./state.ts";
import type { Prompt, World } from "./types.ts";

type Layout = (world: World) => Prompt;

/** The order of the source documents. Written twice: empty, to know what the frame takes, then with what fits into it. */
const seed: Layout = (world) => {
  const parts = partsOf(world);
  const state = world.state && stateTexts(world.state);
  const write = (chars: Allotment): Prompt => {
    const shown = chatInterface(world, parts, chars);
    const postPrompt = parts.postPrompt.cut(chars.postPrompt);
    const block = state && stateBlock(state.status.cut(chars.status), state.activity.cut(chars.activity));
    return {
      system: [systemMessage(parts, chars), ...(block === undefined ? [] : [block])].join("\n\n"),
      user: postPrompt === "" ? render(shown) : `${render(shown)}\n\n${postPrompt}`,
      borders: [],
      eventIds: eventIdsIn(shown),
      waiting: parts.newEvents.cut(chars.newEvents).waiting,
    };
  };
  const frame = write(nothing);
  const left = world.charsMax - frame.system.length - frame.user.length;
  if (left < 0) throw frameTooLarge(world, left);
  const max = world.charsMax;
  const wanted = { ...wantedOf(parts, max), ...(state && wantedState(state)) };
  return write(divide({ max, left, wanted, newEventsLeast: parts.newEvents.least }));
};

const layouts = { cacheable, seed };

/** The orders in which the same elements can be given to a model. An agent's `layout` names one. */
export type LayoutName = keyof typeof layouts;

/**
 * Renders what one step of a turn shows the agent, in at most `world.charsMax` characters.
 * Throws a UserError where not even the tags that are always there fit.
 */
export const layout = (world: World, name: LayoutName): Prompt => layouts[name](world);
