import { readMessage } from "../../adapters/matrix/message.ts";
import { UserError } from "../../base/lib/errors.ts";
import { HOME, type RoomId } from "../../base/lib/ids.ts";
import { historyHeight } from "../../base/prompt/room.ts";
import { clamp, textContent } from "../../base/prompt/viewport.ts";
import { type Agent, personaPath, splitPath } from "../agents/agent.ts";
import { type Submodel, submodelCharsMax } from "../budget/submodel.ts";
import { formatPath } from "../files/path.ts";
import type { StoredQuery, WindowRow } from "../tables/windows.ts";
import { type Desks, seatOf } from "./desk.ts";
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
  /** See `untrusted`. */
  readonly untrusted: (names: Iterable<string>) => Promise<readonly string[]>;
}

/** Content of a window that is always there. */
interface Subject {
  readonly lines: number;
  /** Lines that it shows unless it was made larger or smaller. */
  readonly height: number;
  /** True if it usually shows its end, and all that is added there. */
  readonly follows: boolean;
  readonly sources: readonly RoomId[];
  /** Reads the text that ends with the line `bottom`, and who wrote it. */
  text(bottom: number): Promise<{
    readonly text: string;
    readonly names: readonly string[];
    /** Rooms from which it comes, beside `sources`. */
    readonly from?: readonly RoomId[];
  }>;
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
      isPinned: true,
      top: row?.top ?? usualTop(subject, row?.height || subject.height),
      height: row?.height || subject.height,
    };
    const { top, height } = clamp(before, subject.lines);
    const bottom = Math.min(subject.lines, top + height - 1);
    if (row?.key === key) return this.#outcome(row, action);
    const after = pose({ ...before, top }, { action, argument }, { lines: subject.lines, bottom });
    const asked = action === "query" ? await this.#ask(subject, bottom, argument) : undefined;
    const stays = subject.follows && (row?.top ?? null) === null && (action === "resize" || action === "maximize");
    const changes = {
      state: after.state,
      // A history that was not scrolled goes on following what is said.
      top: stays || after.top === usualTop(subject, after.height) ? null : after.top,
      height: after.height === subject.height ? 0 : after.height,
      turnsLeft: 1,
      sources: [...new Set([...subject.sources, ...(row?.sources ?? []), ...(asked?.from ?? [])])],
      taint: [...new Set([...(row?.taint ?? []), ...(asked?.taint ?? [])])],
      queries: [...(row?.queries ?? []), ...(asked ? [asked.query] : [])].slice(-3),
    };
    await this.#desks.table.changeSystem(seat, windowId, changes, key);
    return this.#outcome({ windowId, ...changes }, action);
  }

  #outcome(
    row: Pick<WindowRow, "windowId" | "state" | "top" | "queries" | "sources" | "taint">,
    action: WindowAction,
  ): Outcome {
    const { windowId, state, top, queries, sources, taint } = row;
    const seen = state !== "normal" ? `is ${state}` : top === null ? "is as it usually is" : `begins with line ${top}`;
    const answer = action === "query" ? (queries.at(-1)?.answer ?? "") : "";
    return { said: `Window ${windowId} ${seen} until the turn ends. ${answer}`.trim(), sources, taint };
  }

  async #ask(
    subject: Subject,
    bottom: number,
    question: string,
  ): Promise<{ query: StoredQuery; taint: readonly string[]; from: readonly RoomId[] }> {
    if (question === "") throw new UserError("The argument must be the question.");
    const { submodel, untrusted } = this.#origin;
    const { text, names, from = [] } = await subject.text(bottom);
    const [answer, taint] = await Promise.all([submodel.ask(question, text), untrusted(names)]);
    return { query: { query: question, answer, version: 0 }, taint, from };
  }

  async #subject(windowId: string): Promise<Subject> {
    const { agent, roomId } = this.#origin;
    const seat = seatOf(agent, roomId);
    if (windowId.startsWith("room_")) {
      const room = await this.#desks.past.room(seat, windowId.slice("room_".length).split(":")[0] ?? "");
      if (!room) throw new UserError(`There is no window ${windowId} that everybody here may read.`);
      const text = async (bottom: number) => {
        const events = await this.#desks.past.lines(seat, { roomId: room.roomId, bottom, count: eventsAsked });
        const lines = events.map(
          (event) => `${event.sentAt.toISOString()} ${event.sender}: ${readMessage(event)?.body ?? event.type}`,
        );
        return {
          text: lines.join("\n").slice(-submodelCharsMax),
          names: events.filter(readMessage).map(({ sender }) => sender),
        };
      };
      return { lines: room.lines, height: historyHeight, follows: true, sources: [room.roomId], text };
    }
    if (windowId === "ephemeris") {
      const text = async () => {
        const entries = await this.#desks.past.thoughts(seat, entriesAsked);
        return {
          text: entries.map(({ entry }) => entry).join("\n"),
          names: entries.flatMap(({ taint }) => taint),
          from: [...new Set(entries.flatMap(({ sources }) => sources))],
        };
      };
      return { lines: entriesAsked, height: entriesAsked, follows: true, sources: [], text };
    }
    const path = windowId === "persona" ? personaPath(agent) : agent.settings.scratchPadFile;
    if (path === null) throw new UserError("There is no scratchpad.");
    // The scratchpad comes with the seat, where everybody here may read it.
    const { files } = await this.#desks.table.desk(seat, windowId === "persona" ? { files: [splitPath(path)] } : {});
    const file = files.find((one) => formatPath(one) === path);
    const content = textContent(file?.text ?? "");
    return {
      lines: content.lines,
      height: Math.max(1, content.lines),
      follows: false,
      sources: windowId === "scratchpad" && file ? [HOME] : [],
      text: async () => ({ text: content.text(submodelCharsMax), names: file?.isTainted ? [path] : [] }),
    };
  }
}
