import { agentName } from "../../adapters/matrix/message.ts";
import { botDeviceOf, type Registration } from "../../adapters/matrix/registration.ts";
import type { RoomId } from "../../base/lib/ids.ts";
import type { AgentDirectory } from "../../domain/agents/agent.ts";
import type { Rights } from "../../domain/rights/rights.ts";
import type { DraftPlace } from "../../domain/speech/draft.ts";
import type { Utterance } from "../../domain/speech/utter.ts";
import type { History } from "../../domain/tables/history.ts";
import type { Rooms } from "../../domain/tables/rooms.ts";
import { Delivery, type DeliveryParts } from "../../edges/delivery/delivery.ts";
import { GrowingMessage } from "../../edges/delivery/drafts.ts";
import { ProgressMessage } from "../../edges/delivery/progress-message.ts";
import { Receipts } from "../../edges/delivery/receipts.ts";
import { ThoughtsRooms } from "../../edges/delivery/thoughts-room.ts";
import { Typing } from "../../edges/delivery/typing.ts";

interface Setting extends Omit<DeliveryParts, "deviceOf"> {
  readonly registration: Registration;
  readonly directory: AgentDirectory;
  readonly history: History;
  readonly rights: Rights;
  readonly rooms: Rooms;
  readonly serverName: string;
  readonly onOutbox: (roomIds: readonly RoomId[]) => void;
}

/** Ties together all that shows people something. */
export function wireDelivery(setting: Setting) {
  const { client, clock, directory, registration, serverName } = setting;
  const botDevice = botDeviceOf(registration);
  const delivery = new Delivery({
    ...setting,
    deviceOf: async (userId) => {
      if (userId === client.botUserId) return botDevice;
      const name = agentName(userId, serverName);
      return name && (await directory.findRecent(name))?.deviceId;
    },
  });
  return {
    botDevice,
    delivery,
    openDraft: (place: DraftPlace) => new GrowingMessage(setting, place),
    openProgress: (place: Omit<Utterance, "text">) => new ProgressMessage(setting, place),
    receipts: new Receipts(client, clock),
    thoughts: new ThoughtsRooms(setting),
    typing: new Typing(client, clock),
  };
}
