import { historyHeight } from "../context/room.ts";
import type { WindowQuery } from "../context/types.ts";
import { clamp, textContent } from "../context/viewport.ts";
import type { WindowRow } from "../database/windows.ts";
import { UserError } from "../lib/errors.ts";
import type { RoomId } from "../lib/ids.ts";
import { readMessage } from "../matrix/message.ts";
import { type Agent, personaPath, splitPath } from "./agent.ts";
import { type Desks, seatOf } from "./desk.ts";
import { type Submodel, submodelCharsMax } from "./submodel.ts";
import { type Outcome, pose, type WindowAction } from "./window-action.ts";

/** Events that a question about a history is answered from: the last before the end of what is shown. */
const eventsAsked = 500;
/** Entries of the ephemeris. */
const entriesAsked = 200;

interface Origin {
  readonly agent: Agent;
  readonly roomId: RoomId;
  readonly key: string;
  readonly submodel: Submodel;
}

/** What a window that is always there shows. */
interface Subject {
  readonly lines: number;
  /** Lines that it shows unless it was made larger or smaller. */
  readonly height: number;
  /** It usually shows its end, and what is added there. */
  readonly follows: boolean;
  readonly sources: readonly RoomId[];
  /** What is asked about: what ends with the line `bottom`. */
  text(bottom: number): Promise<string>;
}

const usualTop = ({ follows, lines }: Subject, height: number): number =>
  follows ? Math.max(1, lines - height + 1) : 1;

/** Windows that are always there. What is done to them is over when the turn ends. */
export class SystemWindows {
  readonly #desks: Desks;
  readonly #origin: Origin;

  constructor(desks: Desks, origin: Origin) {
    this.#desks = desks;
    this.#origin = origin;
  }

  has(windowId: string): boolean {
    return /^(?:persona|scratchpad|ephemeris|room_!.+)$/.test(windowId);
  }

  async act(windowId: string, action: WindowAction, argument: string): Promise<Outcome> {
    if (action === "close" || action === "unpin")
      throw new UserError(`Window ${windowId} is always there. Minimize it if it is in your way.`);
    if (windowId === "persona" && action === "minimize") throw new UserError("The persona is always shown.");
    const { agent, roomId, key } = this.#origin;
    const seat = seatOf(agent, roomId);
    const { windows } = await this.#desks.table.desk(seat);
    const row = windows.find((one) => one.srcType === "system" && one.windowId === windowId);
    const subject = await this.#subject(windowId);
    if (windowId === "ephemeris" && (action === "scroll" || action === "goto" || action === "resize"))
      throw new UserError("The ephemeris shows its newest entries. Ask about the others with the action query.");
    const before = {
      state: row?.state ?? "normal",
      pinned: true,
      top: row?.top ?? usualTop(subject, row?.height || subject.height),
      height: row?.height || subject.height,
    };
    const { top, height } = clamp(before, subject.lines);
    const bottom = Math.min(subject.lines, top + height - 1);
    if (row?.key === key) return this.#outcome(row, action);
    const after = pose({ ...before, top }, { action, argument }, { lines: subject.lines, bottom });
    const queries = row?.queries ?? [];
    const stays = subject.follows && (row?.top ?? null) === null && (action === "resize" || action === "maximize");
    const changes = {
      state: after.state,
      // A history that was not scrolled goes on following what is said.
      top: stays || after.top === usualTop(subject, after.height) ? null : after.top,
      height: after.height === subject.height ? 0 : after.height,
      turnsLeft: 1,
      sources: subject.sources,
      queries: action === "query" ? [...queries, await this.#ask(subject, bottom, argument)].slice(-3) : queries,
    };
    await this.#desks.table.changeSystem(seat, windowId, changes, key);
    return this.#outcome({ windowId, ...changes }, action);
  }

  #outcome(
    { windowId, state, top, queries, sources }: Pick<WindowRow, "windowId" | "state" | "top" | "queries" | "sources">,
    action: WindowAction,
  ): Outcome {
    const seen = state !== "normal" ? `is ${state}` : top === null ? "is as it usually is" : `begins with line ${top}`;
    const answer = action === "query" ? (queries.at(-1)?.answer ?? "") : "";
    return { said: `Window ${windowId} ${seen} until the turn ends. ${answer}`.trim(), sources };
  }

  async #ask(subject: Subject, bottom: number, question: string): Promise<WindowQuery & { version: number }> {
    if (question === "") throw new UserError("Give as argument the question.");
    return {
      query: question,
      answer: await this.#origin.submodel.ask(question, await subject.text(bottom)),
      version: 0,
    };
  }

  async #subject(windowId: string): Promise<Subject> {
    const { agent, roomId } = this.#origin;
    const seat = seatOf(agent, roomId);
    if (windowId.startsWith("room_")) {
      const room = await this.#desks.past.room(seat, windowId.slice("room_".length).split(":")[0] ?? "");
      if (!room) throw new UserError(`There is no window ${windowId} that everybody here may read.`);
      const text = async (bottom: number): Promise<string> => {
        const events = await this.#desks.past.lines(seat, { roomId: room.roomId, bottom, count: eventsAsked });
        return events
          .map((event) => `${event.sentAt.toISOString()} ${event.sender}: ${readMessage(event)?.body ?? event.type}`)
          .join("\n")
          .slice(-submodelCharsMax);
      };
      return { lines: room.lines, height: historyHeight, follows: true, sources: [room.roomId], text };
    }
    if (windowId === "ephemeris") {
      const text = async () => (await this.#desks.past.thoughts(seat, entriesAsked)).join("\n");
      return { lines: entriesAsked, height: entriesAsked, follows: true, sources: [], text };
    }
    const path = windowId === "persona" ? personaPath(agent) : agent.settings.scratchPadFile;
    if (path === null) throw new UserError("There is no scratchpad.");
    const { files } = await this.#desks.table.desk(seat, [splitPath(path)]);
    const content = textContent(files.find((file) => `${file.share}:${file.path}` === path)?.text ?? "");
    return {
      lines: content.lines,
      height: Math.max(1, content.lines),
      follows: false,
      sources: [],
      text: async () => content.text(submodelCharsMax),
    };
  }
}
