import { isObject } from "../../base/lib/json.ts";
import { fetchWithin, networkReason } from "../../base/lib/outside.ts";

/** Lists of models are long: OpenRouter's has half a megabyte. */
const limits = { ms: 10_000, bytes: 16_000_000 };
const namesShown = 5;

/** Asks a server for its list of models, which costs nothing. @returns what is wrong; undefined where nothing seems to be */
export async function probeModel(
  baseUrl: string,
  apiKey: string | undefined,
  name: string,
): Promise<string | undefined> {
  let response: Response;
  try {
    const headers = apiKey === undefined ? undefined : { authorization: `Bearer ${apiKey}` };
    response = await fetchWithin(`${baseUrl.replace(/\/+$/, "")}/models`, { ...(headers && { headers }) }, limits);
  } catch (thrown) {
    return `no model server answers at ${baseUrl}: ${networkReason(thrown).message}`;
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
