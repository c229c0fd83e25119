import { readFile } from "node:fs/promises";
import { openDatabase } from "../../adapters/database/connection.ts";
import { HomeserverProbe, listenForPing } from "../../adapters/matrix/probe.ts";
import { probeModel } from "../../adapters/model/probe.ts";
import { messageOf, UserError } from "../../base/lib/errors.ts";
import { isUserId, splitUserId } from "../../base/lib/matrix-id.ts";
import { isApiKey } from "../config/values.ts";
import type { InitOptions } from "./init.ts";
import { listenAddress } from "./init.ts";

/** Of what the operator has said so far. */
export type Answers = Partial<InitOptions> & { readonly dir: string };

interface Question {
  /** The flag that answers it as well. */
  readonly flag: string;
  readonly text: string;
  /** Value if nothing is answered; undefined: an answer is needed. */
  readonly fallback?: string;
  readonly given: (answers: Answers) => boolean;
  readonly read: (answer: string) => Partial<InitOptions>;
  /** Finds a mistake that no state of the outside world can excuse. */
  readonly mistake: (answers: Answers) => string | undefined;
  /** Finds trouble in the outside world; it may be gone later. */
  readonly trouble: (answers: Answers) => Promise<string | undefined>;
}

const isWeb = (url = ""): boolean => /^https?:\/\//i.test(url) && URL.canParse(url);
const isPostgres = (database: string): boolean => /^postgres(?:ql)?:/.test(database);

/** Five, in the order in which each can be tested by those before it. */
const questions: readonly Question[] = [
  {
    flag: "--homeserver",
    text: "The homeserver's URL, as seen from here",
    fallback: "http://127.0.0.1:8008",
    given: ({ homeserver }) => homeserver !== undefined,
    read: (homeserver) => ({ homeserver }),
    mistake: ({ homeserver }) => (isWeb(homeserver) ? undefined : "expected a URL such as http://127.0.0.1:8008"),
    async trouble({ homeserver = "" }) {
      const { status, error, body } = await new HomeserverProbe(homeserver).versions();
      if (status === 0) return `no homeserver answers at ${homeserver}: ${error}`;
      return Array.isArray(body.versions)
        ? undefined
        : `what answers at ${homeserver} is no homeserver (status ${status})`;
    },
  },
  {
    flag: "--admin",
    text: "Your own full user id, such as @you:example.org: you will be the admin",
    given: ({ admin }) => admin !== undefined,
    read: (admin) => ({ admin }),
    mistake: ({ admin = "" }) => (isUserId(admin) ? undefined : "expected a full user id such as @you:example.org"),
    async trouble({ homeserver = "", admin = "" }) {
      const name = await new HomeserverProbe(homeserver).serverName();
      if (name === undefined || !isUserId(admin) || splitUserId(admin).server === name) return undefined;
      return `the homeserver's name is ${name}, and the admin has to be one of its users`;
    },
  },
  {
    flag: "--url",
    text: "The URL at which the homeserver will reach this bridge",
    fallback: "http://127.0.0.1:9009",
    given: ({ url }) => url !== undefined,
    read: (url) => ({ url }),
    mistake: ({ url }) => (isWeb(url ?? "http://x") ? undefined : "expected a URL such as http://127.0.0.1:9009"),
    async trouble({ url = "http://127.0.0.1:9009" }) {
      const { host, port } = listenAddress(url);
      try {
        await (await listenForPing(host, port, "")).close();
        return undefined;
      } catch (error) {
        return `nobody can listen on port ${port} here: ${messageOf(error)}`;
      }
    },
  },
  {
    flag: "--model-url",
    text: "The language model: BASE-URL NAME [FILE WITH ITS KEY]",
    fallback: "https://openrouter.ai/api/v1 anthropic/claude-sonnet-4.5",
    given: ({ modelUrl, model }) => modelUrl !== undefined || model !== undefined,
    read(answer) {
      const [modelUrl, model, ...file] = answer.split(/\s+/);
      return { modelUrl, model, modelKeyFile: file.length > 0 ? file.join(" ") : undefined };
    },
    mistake({ modelUrl = "http://x", model = "" }) {
      if (!isWeb(modelUrl)) return "expected a URL such as https://openrouter.ai/api/v1";
      return model === "" ? "expected the model's name behind the URL" : undefined;
    },
    async trouble({ modelUrl = "https://openrouter.ai/api/v1", model = "", modelKeyFile }) {
      try {
        const key = modelKeyFile === undefined ? undefined : (await readFile(modelKeyFile, "utf8")).trim();
        if (key !== undefined && !isApiKey(key)) {
          return `${modelKeyFile} holds no key: it is of one line without spaces`;
        }
        return await probeModel(modelUrl, key, model);
      } catch (error) {
        return `the key's file cannot be read: ${messageOf(error)}`;
      }
    },
  },
  {
    flag: "--database",
    text: "The database: a folder for the embedded one, or postgres://USER:PASSWORD@HOST/NAME",
    fallback: "data",
    given: ({ database }) => database !== undefined,
    read: (database) => ({ database }),
    mistake: ({ database = "data" }) =>
      isPostgres(database) && !URL.canParse(database) ? "expected postgres://USER:PASSWORD@HOST/NAME" : undefined,
    async trouble({ database = "data" }) {
      if (!isPostgres(database)) return undefined;
      try {
        await (await openDatabase({ url: database })).close();
        return undefined;
      } catch (error) {
        return messageOf(error);
      }
    },
  },
];

/** Way to speak with the operator. */
export interface Dialogue {
  readonly ask: (question: string) => Promise<string>;
  readonly tell: (line: string) => void;
}

/**
 * Asks for everything that no flag has said, and tests each answer at once. One that fails its test is kept when it
 * is given again.
 */
export async function askOperator(given: Answers, { ask, tell }: Dialogue, mayTest: boolean): Promise<Answers> {
  let answers = given;
  for (const question of questions.filter((each) => !each.given(given))) {
    let before: string | undefined;
    for (;;) {
      const { text, fallback } = question;
      const answer = (await ask(`${text}${fallback === undefined ? "" : ` [${fallback}]`}: `)).trim() || fallback || "";
      const tried = { ...answers, ...question.read(answer) };
      const mistake = question.mistake(tried);
      const trouble = mistake ?? (mayTest && answer !== before ? await question.trouble(tried) : undefined);
      if (trouble === undefined) {
        answers = tried;
        break;
      }
      tell(
        `  ✗ ${trouble.replace(/\.$/, "")}.${mistake === undefined ? " Answer anew, or the same again to keep it." : ""}`,
      );
      before = mistake === undefined ? answer : undefined;
    }
  }
  return answers;
}

/** Throws a UserError that names the flags which are missing, for where there is nobody to ask. */
export function requireFlags(answers: Answers): void {
  const missing = questions.filter(({ given, fallback }) => fallback === undefined && !given(answers));
  if (answers.homeserver === undefined) missing.unshift(...questions.slice(0, 1));
  if (missing.length === 0) return;
  const flags = missing.map(({ flag, text }) => `  ${flag}: ${text}`);
  throw new UserError(["This is no terminal, and these flags are missing:", ...flags].join("\n"));
}

/** Tests everything that flags have said. @throws UserError that lists what failed */
export async function testFlags(answers: Answers): Promise<void> {
  const failed: string[] = [];
  for (const { flag, given, trouble, mistake } of questions) {
    if (!given(answers) || mistake(answers) !== undefined) continue;
    const found = await trouble(answers);
    if (found !== undefined) failed.push(`  ${flag}: ${found}`);
  }
  if (failed.length === 0) return;
  const remedy = "Nothing is written. Correct it, or add --no-test to write the files nevertheless.";
  throw new UserError([...failed.map((line) => line.trim()), remedy].join("\n"));
}
