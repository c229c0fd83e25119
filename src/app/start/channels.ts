import type { Conversation, RoomId } from "../../base/lib/ids.ts";
import type { Agent } from "../../domain/agents/agent.ts";
import type { Fresh } from "../../domain/tables/pending.ts";
import type { SoleBridge } from "../../edges/routing/sole-bridge.ts";

/** A call to a part that is made later than those who call it. */
interface Channel<Args extends readonly unknown[], Result> {
  (...args: Args): Result;
  /** Set before anything runs. */
  part?: (...args: Args) => Result;
}

function openChannel<Args extends readonly unknown[], Result = void>(name: string): Channel<Args, Result> {
  const channel: Channel<Args, Result> = (...args) => {
    if (!channel.part) throw new Error(`nothing is tied to the channel ${name}`);
    return channel.part(...args);
  };
  return channel;
}

/** Opens the channels by which the parts of the bridge call each other in circles. */
export const openChannels = () => ({
  /** The homeserver has pushed events; it takes them back where this rejects. */
  onTransaction: openChannel<[events: readonly unknown[]], Promise<void>>("onTransaction"),
  /** The homeserver has sent something that is no transaction. */
  onMisfit: openChannel<[raw: string, reason: string], Promise<void>>("onMisfit"),
  /** The homeserver pings; rejects where nobody is to be found here. */
  onPing: openChannel<[id: string | undefined], Promise<void>>("onPing"),
  /** True if the homeserver answers. */
  isReachable: openChannel<[], boolean>("isReachable"),
  /** The guard against a second bridge with the same registration. */
  sole: openChannel<[], SoleBridge>("sole"),
  /** New events were pushed, with what their rooms are like. */
  onFresh: openChannel<[fresh: readonly Fresh[]]>("onFresh"),
  /** These rooms have events to route. */
  onStored: openChannel<[roomIds: readonly RoomId[]]>("onStored"),
  /** Something waits to be sent into these rooms. */
  onOutbox: openChannel<[roomIds: readonly RoomId[]]>("onOutbox"),
  /** Work may go on that was withheld because of another bridge. */
  onAllowed: openChannel<[]>("onAllowed"),
  /** These conversations have something to work on. */
  onWoken: openChannel<[conversations: readonly Conversation[]]>("onWoken"),
  /** The agent's file was changed. */
  onChanged: openChannel<[agent: Agent]>("onChanged"),
  /** Tells those who run the bridge, in the control room; once for a key. */
  tellOperators: openChannel<[text: string, key: string]>("tellOperators"),
});

type Channels = ReturnType<typeof openChannels>;
type PartOf<Way> = Way extends Channel<infer Args, infer Result> ? (...args: Args) => Result : never;

/** Ties each channel to the part that takes its calls. */
export function tie(channels: Channels, parts: { readonly [Name in keyof Channels]: PartOf<Channels[Name]> }): void {
  for (const [name, part] of Object.entries(parts)) Object.assign(channels[name as keyof Channels], { part });
}
