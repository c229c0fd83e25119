import { messageOf, UserError } from "../../base/lib/errors.ts";
import { nearest } from "../../base/lib/nearest.ts";
import { type FilePath, formatPath } from "../files/path.ts";
import { checkWorkingFile } from "../files/working-files.ts";
import { parseAgentSettings } from "./settings.ts";
import { isSubAgentFile, parseSubAgent } from "./sub-agent.ts";

/**
 * A check that refuses an `agent.json`, the file of a sub-agent or a working file that could not be used, with all that
 * is wrong with it. Other files are not looked at.
 * @param toolNames all tools there are
 */
export const definitionCheck =
  (toolNames: readonly string[]) =>
  (file: FilePath, text: string | null): void => {
    checkWorkingFile(file, text);
    const isSettings = file.share === "agents" && /^\/[^/]+\/agent\.json$/.test(file.path);
    if (!isSettings && !isSubAgentFile(file)) return;
    const where = formatPath(file);
    if (text === null) throw new UserError(`${where} cannot be used: it is no text.`);
    if (isSettings) return void parseAgentSettings(parseJson(text, where), where);
    const unknown = parseSubAgent(file, text).tools.filter((name) => !toolNames.includes(name));
    if (unknown.length === 0) return;
    const hints = unknown.map((name) => {
      const meant = nearest(name, toolNames);
      return `  there is no tool ${name}${meant === undefined ? "" : `: did you mean ${meant}?`}`;
    });
    throw new UserError([`${where} cannot be used:`, ...hints].join("\n"));
  };

const parseJson = (text: string, where: string): unknown => {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new UserError(`${where} cannot be used: it is not valid JSON: ${messageOf(error)}`);
  }
};
