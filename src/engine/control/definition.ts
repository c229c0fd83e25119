import { UserError } from "../../base/lib/errors.ts";
import { digest } from "../../base/lib/ids.ts";
import { isObject } from "../../base/lib/json.ts";
import { sureChars } from "../../base/prompt/budget.ts";
import { type Agent, personaPath, settingsFile } from "../../domain/agents/agent.ts";
import { defaultPersona } from "../../domain/agents/persona.ts";
import { type AgentSettings, parseAgentSettings } from "../../domain/agents/settings.ts";
import type { FileSystem } from "../../domain/files/file-system.ts";
import { requireLevel } from "../../domain/rights/permissions.ts";
import type { AuditRow } from "../../domain/tables/audit.ts";
import { filesFor } from "../operations/tool-context.ts";
import type { CommandContext } from "./define-command.ts";

type Fields = Readonly<Record<string, unknown>>;

/** Text that defines an agent, and untrusted texts in it. */
interface DefiningText {
  readonly text: string;
  readonly taint: readonly string[];
}

/**
 * An agent's persona and settings, as whoever gives a command may read and change them: with the rights, checks and
 * versions of their files. Changes are in the audit, and count from the agent's next turn.
 */
export class Definition {
  readonly #agent: Agent;
  readonly #context: CommandContext;
  readonly #files: FileSystem;
  readonly #settingsPath: string;

  constructor(context: CommandContext, agent: Agent) {
    const { event, files, level } = context;
    const { eventId, roomId, sender } = event;
    const key = digest("definition", eventId);
    const origin = { agent, roomId, by: "person" as const, requesters: [sender], sources: [roomId], taint: [], key };
    this.#agent = agent;
    this.#context = context;
    this.#files = filesFor(files, origin, level);
    this.#settingsPath = `agents:${settingsFile(agent.name)}`;
  }

  async persona(): Promise<DefiningText> {
    const { text } = await this.#files.read(personaPath(this.#agent));
    return { text: text ?? "", taint: this.#files.taint };
  }

  async prompt(): Promise<DefiningText> {
    const { text } = await this.#files.read(this.#settingsPath);
    const { systemPrompt } = parseAgentSettings(this.#fieldsOf(text ?? ""), this.#settingsPath);
    return { text: systemPrompt, taint: this.#files.taint };
  }

  /** `null` brings back the default. */
  setPersona(text: string): Promise<AuditRow> {
    const persona = text === "null" ? defaultPersona(this.#agent.displayName) : text;
    checkLength("persona", persona, this.#agent.settings);
    return this.#change(personaPath(this.#agent), "persona", (before) => ({
      text: persona,
      before: before || null,
      after: persona,
    }));
  }

  /** `null` brings back the default. */
  setPrompt(text: string): Promise<AuditRow> {
    return this.setField("systemPrompt", ({ systemPrompt: _, ...others }) =>
      text === "null" ? others : { ...others, systemPrompt: text },
    );
  }

  /**
   * Changes one field of `agent.json`.
   * @throws UserError that lists every mistake
   */
  setField(field: string, change: (fields: Fields) => Fields): Promise<AuditRow> {
    return this.#change(this.#settingsPath, field, (text) => {
      const fields = this.#fieldsOf(text);
      const changed = change(fields);
      const settings = parseAgentSettings(changed, this.#settingsPath);
      if (field === "systemPrompt") checkLength(field, settings.systemPrompt, settings);
      return {
        text: JSON.stringify(changed, undefined, 2),
        before: textOf(valueAt(fields, field)),
        after: textOf(valueAt(changed, field)),
      };
    });
  }

  async #change(
    path: string,
    field: string,
    change: (text: string) => { readonly text: string } & Pick<AuditRow, "before" | "after">,
  ): Promise<AuditRow> {
    const { audit, directory, event, level } = this.#context;
    const { name } = this.#agent;
    requireLevel(level, "operate");
    let row: AuditRow | undefined;
    await this.#files.edit(path, async (old) => {
      const { text, before, after } = change(old);
      row = await audit.record({
        key: event.eventId,
        actor: event.sender,
        subject: `agent ${name}: ${field}`,
        before,
        after,
      });
      return text;
    });
    directory.forget(name);
    await directory.find(name);
    if (!row) throw new Error(`${path} was written without a record of it`);
    return row;
  }

  #fieldsOf(text: string): Fields {
    try {
      const fields: unknown = JSON.parse(text || "{}");
      if (isObject(fields)) return fields;
    } catch {
      // It is told below.
    }
    throw new UserError(`${this.#settingsPath} holds no settings. Write it anew.`);
  }
}

/** The value at a path such as `models.read.name`. */
const valueAt = (fields: unknown, path: string): unknown =>
  path.split(".").reduce<unknown>((value, key) => (isObject(value) ? value[key] : undefined), fields);

const textOf = (value: unknown): string =>
  value === undefined ? "the default" : typeof value === "string" ? value : JSON.stringify(value);

/** @throws UserError where the model would not be sure to see all of the text */
export function checkLength(
  part: "persona" | "systemPrompt",
  text: string,
  { approxContextCharsMax }: Pick<AgentSettings, "approxContextCharsMax">,
): void {
  const most = sureChars(part, approxContextCharsMax);
  if (text.length <= most) return;
  throw new UserError(
    `${part}: found ${text.length} characters, expected at most ${most}: the model might not be shown more. Shorten the text, or raise approxContextCharsMax, which is ${approxContextCharsMax}.`,
  );
}
