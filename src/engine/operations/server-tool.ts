import { ServerFailure } from "../../adapters/mcp/failure.ts";
import { UserError } from "../../base/lib/errors.ts";
import { digest } from "../../base/lib/ids.ts";
import { canonicalJson } from "../../base/lib/json.ts";
import type { Agent } from "../../domain/agents/agent.ts";
import { natureOf, type ServerSettings } from "../../domain/servers/server-settings.ts";
import type { Servers } from "../../domain/servers/servers.ts";
import type { ServerToolRow } from "../../domain/tables/server-tools.ts";
import { inputFrom } from "./server-input.ts";
import { outcomeOf, serverTaint } from "./server-outcome.ts";
import { quote } from "./shown-text.ts";
import { type AnyTool, defineTool } from "./tool.ts";
import type { ToolSource } from "./toolbox.ts";

const helpMost = 400;

/** Makes the tools of servers into tools of agents. */
export class ServerToolSource implements ToolSource {
  readonly #servers: Servers;
  /** One tool for each definition, so that what is made of it is made once. */
  readonly #made = new WeakMap<ServerToolRow, AnyTool>();

  constructor(servers: Servers) {
    this.#servers = servers;
  }

  of({ settings }: Agent): readonly AnyTool[] {
    return settings.mcp.length === 0
      ? []
      : this.#servers
          .toolsOf(settings.mcp)
          .flatMap((row) => this.#toolOf(row) ?? [])
          .toSorted((a, b) => (a.name < b.name ? -1 : 1));
  }

  find(name: string): AnyTool | undefined {
    const row = this.#servers.row(name);
    return row && this.#toolOf(row);
  }

  #toolOf(row: ServerToolRow): AnyTool | undefined {
    const settings = this.#servers.settings.find(({ name }) => name === row.server);
    if (!settings || row.accepted === null) return undefined;
    const known = this.#made.get(row);
    if (known) return known;
    const tool = serverTool(settings, row.name, row.accepted);
    this.#made.set(row, tool);
    return tool;
  }
}

/** A tool of a server, as the gate, models and people know it. */
function serverTool(settings: ServerSettings, own: string, accepted: NonNullable<ServerToolRow["accepted"]>): AnyTool {
  const { name: server } = settings;
  const { description, schema } = accepted;
  const nature = natureOf(settings, accepted);
  const { kind, isRepeatable, isOpenWorld } = nature;
  const name = `${server}__${own}`;
  return defineTool({
    name,
    set: "mcp",
    topic: "servers",
    description: description === "" ? `A tool of the server ${server}, which says nothing about it.` : description,
    help: `A tool of the server ${server}${description === "" ? "" : `, which says: ${quote(description, helpMost)}`}.`,
    kind,
    // Arguments may go on from the server to anywhere, whatever the tool does.
    ...(isOpenWorld && { reachesOutside: true }),
    isRepeatable,
    input: inputFrom(schema),
    schema,
    revision: digest(canonicalJson(accepted), canonicalJson({ ...nature })),
    async run(input, context) {
      const { agent, by, onProgress: tell, roomId, servers, showProgress, signal } = context;
      const onProgress = (amount: string, words = ""): void => {
        showProgress?.(() => `${server} is at ${amount}${words === "" ? "" : `: ${quote(words)}`} …`, [roomId]);
        // Words may repeat what is said in this room: they are for those who wait here.
        if (by === "model") tell(agent.name, roomId, `${name} is at ${amount}.`);
      };
      try {
        return await outcomeOf(await servers.call(name, { input, signal, onProgress }), server, context);
      } catch (error) {
        if (!(error instanceof ServerFailure)) throw error;
        const what = `the server ${server} gave no answer: ${error.message}`;
        if (kind === "read") throw new UserError(what);
        const result = `It is unknown if this was done: ${what}. Look before you try it again.`;
        return { result, isUnknown: true, taint: [serverTaint(server)] };
      }
    },
  });
}
