import { isTransaction, sendsTo } from "./faults.ts";
import type { Fault, RequestHead } from "./http-proxy.ts";
import type { Stage } from "./stage.ts";

type Border = readonly [name: string, hold: (stage: Stage) => Fault];

const asks =
  (method: string, path: string) =>
  (head: RequestHead): boolean =>
    head.method === method && head.path.startsWith(`/_matrix/client/v3/${path}`);
/** A pull of the agent's device, as no sweep is one. */
const pulls = (head: RequestHead): boolean => asks("GET", "sync")(head) && head.path.includes("device_id=");

/** Moments in which an agent's device is made. */
export const bordersOfDevice: readonly Border[] = [
  ["keys are uploaded", ({ toHomeserver }) => toHomeserver.holdAnswer({ when: asks("POST", "keys/upload") })],
  [
    "the identity is uploaded",
    ({ toHomeserver }) => toHomeserver.holdAnswer({ when: asks("POST", "keys/device_signing/upload") }),
  ],
  ["the device is signed", ({ toHomeserver }) => toHomeserver.hold({ when: asks("POST", "keys/signatures/upload") })],
];

/** Moments in which a message of a new session is read, and answered in a new session. */
export const bordersOfAnswer = (roomId: () => string): readonly Border[] => [
  ["before the event is stored", ({ toBridge }) => toBridge.hold({ when: isTransaction })],
  ["after the event is stored", ({ toBridge }) => toBridge.holdAnswer({ when: isTransaction })],
  ["before its key is fetched", ({ toHomeserver }) => toHomeserver.hold({ when: pulls })],
  ["when its key was fetched", ({ toHomeserver }) => toHomeserver.holdAnswer({ when: pulls })],
  ["before the model is asked", ({ toModel }) => toModel.hold()],
  ["before a key is given", ({ toHomeserver }) => toHomeserver.hold({ when: asks("PUT", "sendToDevice") })],
  ["after a key was given", ({ toHomeserver }) => toHomeserver.holdAnswer({ when: asks("PUT", "sendToDevice") })],
  ["before the answer is sent", ({ toHomeserver }) => toHomeserver.hold({ when: (head) => sendsTo(roomId())(head) })],
  [
    "after the answer was sent",
    ({ toHomeserver }) => toHomeserver.holdAnswer({ when: (head) => sendsTo(roomId())(head) }),
  ],
];

/** Moments of that which a device of the person's that is new has besides. */
export const bordersOfNewDevice: readonly Border[] = [
  ["before devices are asked for", ({ toHomeserver }) => toHomeserver.hold({ when: asks("POST", "keys/query") })],
  ["when devices are known", ({ toHomeserver }) => toHomeserver.holdAnswer({ when: asks("POST", "keys/query") })],
  ["before keys are claimed", ({ toHomeserver }) => toHomeserver.hold({ when: asks("POST", "keys/claim") })],
  ["when keys were claimed", ({ toHomeserver }) => toHomeserver.holdAnswer({ when: asks("POST", "keys/claim") })],
];
