import type { Database } from "../../adapters/database/connection.ts";
import type { Notifier } from "../../adapters/database/notify.ts";
import type { MatrixClient } from "../../adapters/matrix/client.ts";
import { messageOf } from "../../base/lib/errors.ts";
import { digest, type RoomId, type UserId } from "../../base/lib/ids.ts";
import type { Agent } from "../../domain/agents/agent.ts";
import { introduce } from "../../domain/agents/profile.ts";
import type { Embeddings } from "../../domain/memory/embeddings.ts";
import { Forgetting } from "../../domain/memory/forget.ts";
import { MemoryTransfer } from "../../domain/memory/transfer.ts";
import { Audit } from "../../domain/tables/audit.ts";
import type { Events } from "../../domain/tables/events.ts";
import { Guests } from "../../domain/tables/guests.ts";
import { JoinRules } from "../../domain/tables/join-rules.ts";
import type { Outbox } from "../../domain/tables/outbox.ts";
import { overviewOf } from "../../domain/tables/overview.ts";
import { SilenceTable } from "../../domain/tables/silences.ts";
import { answerWaiting } from "../../edges/routing/invite.ts";
import { Commands } from "../../engine/control/commands.ts";
import type { ControlRoom } from "../../engine/control/control-room.ts";
import type { AgentDevices, AnyCommand, CommandServices } from "../../engine/control/define-command.ts";
import { GuestList } from "../../engine/control/guest-list.ts";
import { AgentLifecycle } from "../../engine/control/lifecycle.ts";
import type { Approvals } from "../../engine/operations/approvals.ts";
import type { Mind } from "../../engine/turn/mind.ts";
import type { TurnRunner } from "../../engine/turn/runner.ts";
import type { LiveConfig } from "../config/live.ts";
import { check } from "../operator/check.ts";
import { findingText } from "../operator/check-finding.ts";
import { loadAll } from "./load.ts";

interface Parts {
  readonly live: LiveConfig;
  readonly database: Database;
  readonly notifier: Notifier;
  readonly mind: Mind;
  readonly prefix: string;
  readonly client: MatrixClient;
  readonly events: Events;
  readonly outbox: Outbox;
  readonly runner: TurnRunner;
  readonly controlRoom: ControlRoom;
  readonly approvals: Approvals;
  /** There is an agent that may be new. */
  readonly onWelcome: () => void;
  readonly onErased: (userId: UserId) => void;
  readonly sweep: () => void;
  readonly devices: AgentDevices;
  readonly embeddings: Embeddings;
  readonly computers: Pick<CommandServices, "sandboxes" | "sandboxCommands">;
  readonly servers: CommandServices["servers"];
  readonly openProgress: CommandServices["openProgress"];
}

/** Ties together people's commands: for the agents of a room, and for the running bridge. */
export async function wireControl(parts: Parts) {
  const { live, database, notifier, mind, prefix, client, outbox, runner, controlRoom } = parts;
  const { directory, log, rights, rooms, turns } = mind;
  const { serverName } = live.current.homeserver;
  const joinRules = new JoinRules(database);
  const guests = new GuestList({
    client,
    rights,
    rooms,
    guests: new Guests(database),
    joinRules,
    log,
    configured: () => live.current.controlRoom,
  });
  const welcome = async (agent: Agent): Promise<void> => {
    await introduce(agent, client, directory);
    parts.onWelcome();
    const doorkeeper = { rights, botUserId: client.botUserId };
    mind.onOutbox([agent.userId as string as RoomId, ...(await answerWaiting(agent, doorkeeper, { rooms, outbox }))]);
  };
  const welcomeSoon = (agent: Agent): void =>
    void welcome(agent).catch((error: unknown) => log.warn(`the profile of ${agent.userId}: ${messageOf(error)}`));
  const lifecycle = new AgentLifecycle({
    serverName,
    directory,
    rooms,
    turns,
    runner,
    client,
    welcome,
    onReaders: () => guests.follow(),
    onErased: parts.onErased,
    onWaiting: mind.onWoken,
  });

  /** Puts the configuration into force as it is now. */
  const apply = async (): Promise<string[]> => {
    const { agents, logLevel, permissions } = live.current;
    log.level = logLevel;
    const before = await rights.rows();
    await rights.configure(permissions);
    const after = await rights.rows();
    const levels = new Map(before.map(({ actor, level }) => [actor, level]));
    const changed = after
      .filter(({ actor, level }) => levels.get(actor) !== level)
      .map(({ actor, level }) => `permission of ${actor}: ${levels.get(actor) ?? "nothing"} → ${level ?? "nothing"}`);
    const gone = before
      .filter(({ actor, level }) => level !== null && !after.some((row) => row.actor === actor))
      .map(({ actor, level }) => `permission of ${actor}: ${level} → nothing`);
    const known = new Set((await directory.table.all()).map(({ name }) => name));
    const made: string[] = [];
    for (const seed of agents) {
      if (!known.has(seed.name) && (await lifecycle.create(seed))) made.push(`agent ${seed.name}: made`);
    }
    await controlRoom.adopt();
    return [...changed, ...gone, ...made];
  };

  /** Another process was told to reload. What the database holds of the configuration is that one's business. */
  const follow = async ([key = "", ...theirs]: readonly string[]): Promise<void> => {
    const name = `The process ${live.current.bridge.instance}`;
    const tell = (text: string): void => controlRoom.tellOperators(text, digest("reload", name, key));
    try {
      await live.reload();
      log.level = live.current.logLevel;
      const others = live.differsFrom(theirs);
      if (others.length > 0)
        tell(`${name} has read another configuration, which is not the same in: ${others.join(", ")}.`);
    } catch (error) {
      tell(`${name} goes on with the last good configuration. ${messageOf(error)}`);
    }
  };
  let following = Promise.resolve();
  notifier.on("reload", (word) => {
    if (word) following = following.then(() => follow(word));
  });

  const commands = new Commands((await loadAll<readonly AnyCommand[]>("commands", "commands")).flat(), {
    ...mind,
    prefix,
    serverName,
    client,
    events: parts.events,
    forgetting: new Forgetting(database, parts.events),
    transfer: new MemoryTransfer(database, serverName),
    runner,
    sweep: parts.sweep,
    devices: parts.devices,
    silences: new SilenceTable(database),
    embeddings: parts.embeddings,
    servers: parts.servers,
    ...parts.computers,
    openProgress: parts.openProgress,
    overview: () => overviewOf(database),
    audit: new Audit(database),
    lifecycle,
    approvals: parts.approvals,
    async reload(key) {
      const { changed, restart } = await live.reload();
      const told = changed
        .filter(({ path }) => !path.startsWith("permissions."))
        .map(({ path, before, after }) => `${path}: ${before} → ${after}`);
      const later = restart.map((section) => `${section}: is different, and waits for a restart`);
      const applied = await apply();
      notifier.tell("reload", [key, ...live.fingerprint]);
      return [...told, ...applied, ...later];
    },
    async check() {
      const found: string[] = [];
      for await (const finding of check(live.current.file, database)) found.push(findingText(finding));
      return found;
    },
  });
  return { commands, guests, welcomeSoon };
}
