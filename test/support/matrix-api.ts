/** Answer of the homeserver other than 2xx. */
class MatrixApiError extends Error {
  override readonly name = "MatrixApiError";
  readonly status: number;
  readonly body: Readonly<Record<string, unknown>>;
  constructor(what: string, status: number, body: Record<string, unknown>) {
    super(`${what}: ${status} ${JSON.stringify(body)}`);
    this.status = status;
    this.body = body;
  }
}

export interface ApiRequest {
  readonly body?: unknown;
  readonly query?: Readonly<Record<string, string>>;
}

/** Calls the client-server API. `path` begins behind `/_matrix/client/`; an empty token is none. */
export async function callMatrix(
  url: string,
  token: string,
  method: "GET" | "PUT" | "POST" | "DELETE",
  path: string,
  { body, query = {} }: ApiRequest = {},
): Promise<Record<string, unknown>> {
  const target = new URL(`_matrix/client/${path}`, url);
  for (const [name, value] of Object.entries(query)) target.searchParams.set(name, value);
  const response = await fetch(target, {
    method,
    headers: { "content-type": "application/json", ...(token === "" ? {} : { authorization: `Bearer ${token}` }) },
    body: body === undefined ? null : JSON.stringify(body),
    signal: AbortSignal.timeout(30_000),
  });
  const answer = (await response.json().catch(() => ({}))) as Record<string, unknown>;
  if (!response.ok) throw new MatrixApiError(`${method} ${path}`, response.status, answer);
  return answer;
}

export interface Credentials {
  readonly userId: string;
  readonly accessToken: string;
  readonly deviceId: string;
}

/** Makes an account; its password is `password-NAME`. */
export async function register(url: string, name: string): Promise<Credentials> {
  const body = { username: name, password: `password-${name}`, auth: { type: "m.login.dummy" } };
  const made = await callMatrix(url, "", "POST", "v3/register", { body });
  return { userId: String(made.user_id), accessToken: String(made.access_token), deviceId: String(made.device_id) };
}
