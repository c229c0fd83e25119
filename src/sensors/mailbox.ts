import type { Sensor } from "../agent/sensor.ts";
import { eventTime } from "../context/time.ts";
import { splitUserId } from "../lib/matrix-id.ts";
import { element } from "../lmml/element.ts";

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
