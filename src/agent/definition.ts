import { messageOf, UserError } from "../lib/errors.ts";
import { type FilePath, formatPath } from "../vfs/path.ts";
import { parseAgentSettings } from "./settings.ts";

/** Refuses an `agent.json` that could not be used, with all that is wrong with it. Other files are not looked at. */
export function checkDefinition(file: FilePath, text: string | null): void {
  if (file.share !== "agents" || !/^\/[^/]+\/agent\.json$/.test(file.path)) return;
  const where = formatPath(file);
  if (text === null) throw new UserError(`${where} cannot be used: it is no text.`);
  parseAgentSettings(parseJson(text, where), where);
}

const parseJson = (text: string, where: string): unknown => {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new UserError(`${where} cannot be used: it is not valid JSON: ${messageOf(error)}`);
  }
};
