import { fence } from "../../adapters/matrix/markdown.ts";
import type { ChatBody, OfferedTool } from "./openai-wire.ts";
import { baseName, exampleOf, findTool, readPairs, takes, usageLine } from "./rehearsal-tools.ts";
import { type RehearsalView, type RehearsedErrand, readQuestion, readView } from "./rehearsal-view.ts";

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
  return { name: tool.name, arguments: { ...here, ...readPairs(rest, tool) } };
};

/** A sub-agent answers in Markdown, as people read it. */
const resultText = ({ name, result }: RehearsalView["calls"][number]): string =>
  baseName(name) === "delegate"
    ? `The sub-agent answered:\n\n${result}`
    : `\`${baseName(name)}\` answered:\n\n${fence(result)}`;

/** Works as a sub-agent, which answers with its last text. */
const rehearseErrand = (
  { subAgent, request }: RehearsedErrand,
  { calls, roomId = "" }: RehearsalView,
  tools: readonly OfferedTool[],
): RehearsedStep => {
  const last = calls.at(-1);
  if (last) return { thought: "I tell what the tool has answered.", text: resultText(last) };
  const call = requestedCall(request, roomId, tools);
  if (call) return { thought: `I am asked to use ${baseName(call.name)}. I do as I am told.`, call };
  const example = tools.slice(0, 1).map((tool) => `, like this: \`!delegate ${subAgent} ${exampleOf(tool)}\``);
  const offered = `I was offered:\n\n${tools.map(usageLine).join("\n")}`;
  return {
    thought: "I am asked for something. I answer by script.",
    text: `I stand in for the sub-agent ${subAgent}. I was asked: “${quote(request)}”. Ask me to use a tool by its name${example}. ${offered}`,
  };
};

const rehearse = (view: RehearsalView, tools: readonly OfferedTool[]): RehearsedStep => {
  const { roomId, newMessages, calls, textSpeaks, errand, toDelegate } = view;
  if (errand) return rehearseErrand(errand, view, tools);
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
  if (last) return say("I tell what the tool has answered.", `${iAm} ${resultText(last)}`);
  if (!message) return { thought: "Nobody has said anything new. I am done." };
  const delegate = toDelegate && findTool(tools, "delegate");
  if (delegate) {
    const thought = `${message.sender} has me delegate something to ${toDelegate.subAgent}. I do as I am told.`;
    return { thought, call: { name: delegate.name, arguments: { ...toDelegate } } };
  }
  const call = requestedCall(message.body, roomId, tools);
  if (call) return { thought: `${message.sender} asks me to use ${baseName(call.name)}. I do as I am told.`, call };
  return say(`${message.sender} says something. I answer by script.`, answerTo(message.body, tools));
};

/** Calls a function where it is told to, and answers a question about a text: outside of an agent's turn. */
const rehearseAlone = (messages: ChatBody["messages"], tools: readonly OfferedTool[]): RehearsedStep => {
  const told = messages.findLast(({ role }) => role === "user")?.content ?? "";
  const [, name = ""] = /\bcall the function (\w+)/i.exec(told) ?? [];
  const tool = findTool(tools, name);
  if (tool) {
    const values = [...told.matchAll(/(\w+) set to (\w+)/g)].map(([, field, value]) => `${field}=${value}`);
    return {
      thought: "I do as I am told.",
      call: { name: tool.name, arguments: readPairs(values.join(" "), tool) },
    };
  }
  const asked = readQuestion(told);
  if (!asked) return { thought: "No chat interface.", text: `${iAm} I can only read the chat interface of Clevernet.` };
  const about = `a text of ${asked.text.length} characters, which begins: “${quote(asked.text)}”`;
  return {
    thought: "I am asked about a text. I answer by script.",
    text: `${iAm} I was asked: “${quote(asked.question)}”, about ${about}.`,
  };
};

/** Decides the next step of the rehearsal model from the request alone: an equal request gives an equal step. */
export const rehearsedStep = ({ messages, tools }: ChatBody): RehearsedStep => {
  const view = readView(messages);
  const offered = tools.map((tool) => tool.function);
  return view ? rehearse(view, offered) : rehearseAlone(messages, offered);
};
