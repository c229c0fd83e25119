import { readAttachment } from "../../adapters/matrix/attachment.ts";
import { readReaction } from "../../adapters/matrix/reaction.ts";
import { isShownTurn } from "../../adapters/matrix/shown-turn.ts";
import { includesLevel } from "../../domain/rights/permissions.ts";
import type { Rights } from "../../domain/rights/rights.ts";
import type { Events, StoredEvent } from "../../domain/tables/events.ts";
import type { Media } from "../../domain/tables/media.ts";
import type { KindOf } from "./project.ts";

/**
 * The file that a message carries. Files are taken from agents, and from those who may talk to agents here; a file that
 * shows what an agent was shown is not taken: it would outlive what it shows.
 */
export async function carriedMediaOf(event: StoredEvent, kindOf: KindOf, rights: Rights): Promise<Media | undefined> {
  const attachment = readAttachment(event);
  if (!attachment) return undefined;
  if (kindOf(event.sender) === "agent" && isShownTurn(event.content))
    return {
      state: "missing",
      reason: "what shows an agent's prompts or memory is kept nowhere else; save it, and send it yourself",
    };
  if (attachment.url === undefined) return { state: "missing", reason: "it has no address that can be read" };
  const isWelcome = kindOf(event.sender) !== "human" || includesLevel(await rights.of(event.sender), "chat");
  return isWelcome ? { state: "pending" } : { state: "missing", reason: "its sender may not talk to agents here" };
}

/** True if a reaction is by an agent, or to what an agent has said. */
export async function isAmongAgents(event: StoredEvent, kindOf: KindOf, events: Events): Promise<boolean> {
  if (kindOf(event.sender) === "agent") return true;
  const target = readReaction(event.content)?.target;
  const sender = target && (await events.find(target))?.sender;
  return sender !== undefined && kindOf(sender) === "agent";
}
