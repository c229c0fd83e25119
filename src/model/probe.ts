import { messageOf } from "../lib/errors.ts";
import { isObject } from "../lib/json.ts";

const patienceMs = 10_000;
const namesShown = 5;

/** Asks a server for its list of models, which costs nothing. @returns what is wrong; undefined where nothing seems to be */
export async function probeModel(
  baseUrl: string,
  apiKey: string | undefined,
  name: string,
): Promise<string | undefined> {
  let response: Response;
  try {
    response = await fetch(`${baseUrl.replace(/\/+$/, "")}/models`, {
      headers: apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` },
      signal: AbortSignal.timeout(patienceMs),
    });
  } catch (thrown) {
    const cause = thrown instanceof Error && thrown.cause instanceof Error ? thrown.cause : thrown;
    return `no model server answers at ${baseUrl}: ${messageOf(cause) || "connection refused"}`;
  }
  if (response.status === 401 || response.status === 403) return `${baseUrl} refuses the key (${response.status})`;
  const body: unknown = await response.json().catch(() => undefined);
  const list = isObject(body) && Array.isArray(body.data) ? (body.data as unknown[]) : [];
  const names = list.flatMap((model) => (isObject(model) && typeof model.id === "string" ? [model.id] : []));
  // Some servers have no such list.
  if (names.length === 0 || names.includes(name)) return undefined;
  const some = names.slice(0, namesShown).join(", ");
  return `${baseUrl} has no model "${name}", but ${some}${names.length > namesShown ? ` and ${names.length - namesShown} more` : ""}`;
}
