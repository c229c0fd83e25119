import { type OlmMachine, UserId as OlmUserId, RequestType } from "@matrix-org/matrix-sdk-crypto-wasm";
import type { MatrixClient } from "../../adapters/matrix/client.ts";
import type { UserId } from "../../base/lib/ids.ts";

/** A device of ours, as the homeserver is asked in its name. */
export interface Device {
  readonly userId: UserId;
  readonly deviceId: string;
  readonly machine: OlmMachine;
  readonly client: Pick<MatrixClient, "request">;
  /** Something was given to other devices. */
  readonly onShared: () => void;
}

/** A request as the machine wants it made. */
interface MachineRequest {
  readonly id?: string | undefined;
  readonly type: RequestType;
  readonly body: string;
  readonly event_type?: string;
  readonly txn_id?: string;
}

const v3 = "/_matrix/client/v3";
const enc = encodeURIComponent;

const posts: Partial<Record<RequestType, string>> = {
  [RequestType.KeysUpload]: `${v3}/keys/upload`,
  [RequestType.KeysQuery]: `${v3}/keys/query`,
  [RequestType.KeysClaim]: `${v3}/keys/claim`,
  [RequestType.SignatureUpload]: `${v3}/keys/signatures/upload`,
};

/** A request may be made twice: the machine is told that it was made only after its answer has come. */
export async function send({ client, machine, onShared, ...as }: Device, request: MachineRequest): Promise<void> {
  const { body: text, event_type: type = "", id, txn_id: transaction = "" } = request;
  const parts = { as: { userId: as.userId, deviceId: as.deviceId }, body: JSON.parse(text) };
  const post = posts[request.type];
  if (post === undefined && request.type !== RequestType.ToDevice)
    throw new Error(`the crypto machine wants a request of the unknown type ${request.type}`);
  const answer =
    post === undefined
      ? await client.request("PUT", `${v3}/sendToDevice/${enc(type)}/${enc(transaction)}`, parts)
      : await client.request("POST", post, parts);
  if (post === undefined) onShared();
  if (id !== undefined) await machine.markRequestAsSent(id, request.type, JSON.stringify(answer));
}

/** Rounds in which the machine may want something more because of what it was answered. */
const roundsMost = 10;

/** Makes all requests that the machine wants made. */
export async function flush(device: Device): Promise<void> {
  for (let round = 0; round < roundsMost; round++) {
    const requests = (await device.machine.outgoingRequests()) as unknown as MachineRequest[];
    if (requests.length === 0) return;
    for (const request of requests) await send(device, request);
  }
}

/** From now on the machine knows the devices that these users have. */
export async function track(device: Device, users: readonly UserId[]): Promise<void> {
  await device.machine.updateTrackedUsers(users.map((user) => new OlmUserId(user)));
  await flush(device);
}
