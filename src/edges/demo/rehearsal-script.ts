import type { ChatBody, OfferedTool } from "./openai-wire.ts";
import { baseName, findTool, readArguments, takes, usageLine } from "./rehearsal-tools.ts";
import { type RehearsalView, readView } from "./rehearsal-view.ts";

/** One step of the rehearsal: it always thinks, and speaks or calls where there is something to do. */
export interface RehearsedStep {
  readonly thought: string;
  readonly text?: string;
  readonly call?: { readonly name: string; readonly arguments: Readonly<Record<string, unknown>> };
}

const iAm = "I am a rehearsal model: a script without any intelligence, here so that everything else can be tried.";

const quote = (text: string): string => {
  const line = text.replace(/\s+/g, " ").trim();
  return line.length > 200 ? `${line.slice(0, 200)}…` : line;
};

const answerTo = (body: string, tools: readonly OfferedTool[]): string => {
  if (/\bhelp\W*$/i.test(body)) {
    const lines = tools.map(usageLine);
    return `${iAm} Ask me to use a tool by its name, like this: \`use SetAgentParameters wakeUpTimerSeconds=120\`. I was offered:\n\n${lines.join("\n")}`;
  }
  return `${iAm} You said: “${quote(body)}”. Say \`help\` to see what I can be asked to do.`;
};

/** `use NAME name=value …`, somewhere in a message; undefined where no such tool is offered. */
const requestedCall = (body: string, roomId: string, tools: readonly OfferedTool[]): RehearsedStep["call"] => {
  const [, name = "", rest = ""] = /\buse\s+`?(\w+)`?(.*)$/is.exec(body) ?? [];
  const tool = findTool(tools, name);
  if (!tool) return undefined;
  const here = takes(tool, "roomId") ? { roomId } : {};
  return { name: tool.name, arguments: { ...here, ...readArguments(rest, tool) } };
};

const rehearse = (
  { roomId, newMessages, calls, textSpeaks }: RehearsalView,
  tools: readonly OfferedTool[],
): RehearsedStep => {
  const message = newMessages.at(-1);
  const last = calls.at(-1);
  const sendMessage = findTool(tools, "SendMessage");

  const say = (thought: string, content: string): RehearsedStep => {
    if (textSpeaks || !sendMessage) return { thought, text: content };
    const thread = message?.threadId === undefined ? {} : { threadId: message.threadId };
    const final = takes(sendMessage, "final") ? { final: true } : {};
    return { thought, call: { name: sendMessage.name, arguments: { roomId, content, ...thread, ...final } } };
  };

  if (roomId === undefined) return { thought: "I was not woken by anybody who waits for an answer. I am done." };
  if (last && baseName(last.name) === "SendMessage") return { thought: "I have spoken in this turn. I am done." };
  if (last) {
    const answered = `\`${baseName(last.name)}\` answered:\n\n\`\`\`\`\n${last.result}\n\`\`\`\``;
    return say("I tell what the tool has answered.", `${iAm} ${answered}`);
  }
  if (!message) return { thought: "Nobody has said anything new. I am done." };
  const call = requestedCall(message.body, roomId, tools);
  if (call) return { thought: `${message.sender} asks me to use ${baseName(call.name)}. I do as I am told.`, call };
  return say(`${message.sender} says something. I answer by script.`, answerTo(message.body, tools));
};

/** Decides the next step of the rehearsal model from the request alone: an equal request gives an equal step. */
export const rehearsedStep = ({ messages, tools }: ChatBody): RehearsedStep => {
  const view = readView(messages);
  if (!view) return { thought: "No chat interface.", text: `${iAm} I can only read the chat interface of Clevernet.` };
  return rehearse(
    view,
    tools.map((tool) => tool.function),
  );
};
