import { splitUserId } from "../../base/lib/matrix-id.ts";
import { element } from "../../base/lmml/element.ts";
import { eventTime } from "../../base/prompt/time.ts";
import type { Sensor } from "../../engine/operations/sensor.ts";

/** Notices what other agents tell the agent. */
export const sensor: Sensor = {
  name: "mailbox",
  description: "what other agents tell the agent, in its home",
  receive: ({ from, onBehalfOf, at, text }) => ({
    reason: "mailbox",
    note: element(
      "message",
      {
        systemId: splitUserId(from.userId).server,
        roomId: "mailbox",
        timestamp: eventTime(at),
        sender: from.userId,
        onBehalfOf,
        messageType: "m.text",
      },
      text,
    ),
  }),
};
