import { UserError } from "../../base/lib/errors.ts";
import { isObject } from "../../base/lib/json.ts";
import { networkReason, OverLimit } from "../../base/lib/outside.ts";

/** A server did not do what it was asked, in words that hold none of its own. */
export class ServerFailure extends Error {
  override readonly name = "ServerFailure";
  /** False if it is certain that the server did nothing. */
  readonly mayBeDone: boolean;
  /** True if the server has forgotten us, as after a start: whoever begins anew is answered. */
  readonly isSessionLost: boolean;
  /** True if the connection is still good: it has refused, or one call has taken too long. */
  readonly isAlive: boolean;

  constructor(message: string, facts: Pick<ServerFailure, "mayBeDone"> & Partial<ServerFailure>) {
    super(message);
    this.mayBeDone = facts.mayBeDone;
    this.isSessionLost = facts.isSessionLost ?? false;
    this.isAlive = facts.isAlive ?? false;
  }
}

const codes: Readonly<Record<string, string>> = {
  REQUEST_TIMEOUT: "it did not answer in time",
  CONNECTION_CLOSED: "the connection was closed",
  NOT_CONNECTED: "there is no connection",
  LIST_PAGINATION_EXCEEDED: "its list of tools does not end",
  CLIENT_HTTP_UNEXPECTED_CONTENT: "it sent something that is not of the protocol",
  INVALID_RESULT: "it sent something that is not of the protocol",
  ERA_NEGOTIATION_FAILED: "it speaks another version of the protocol",
  ENOTFOUND: "there is no such name, or no name server answers",
  EAI_AGAIN: "there is no such name, or no name server answers",
  ECONNREFUSED: "nobody answers there",
};

/** Errors of a connection that was never made. */
const unsent = ["ENOTFOUND", "EAI_AGAIN", "ECONNREFUSED", "UND_ERR_CONNECT_TIMEOUT", "NOT_CONNECTED"];

/** Finds the status with which the server refused a request. */
const statusOf = (thrown: unknown): number | undefined => {
  const status = isObject(thrown) && isObject(thrown.data) ? thrown.data.status : undefined;
  return typeof status === "number" ? status : undefined;
};

/** Words for an error of a request; `isCall`: it was the call of a tool. */
export function serverFailureOf(thrown: unknown, isCall: boolean): ServerFailure {
  if (thrown instanceof ServerFailure) return thrown;
  const status = statusOf(thrown);
  if (status !== undefined) {
    const isRefused = status >= 400 && status < 500;
    return new ServerFailure(`it answered ${status}${meaningOf(status)}`, {
      mayBeDone: isCall && !isRefused,
      isSessionLost: status === 400 || status === 404,
    });
  }
  const reason = networkReason(thrown);
  const code = "code" in reason ? String(reason.code) : "";
  if (reason instanceof UserError) return new ServerFailure(reason.message.replace(/\.$/, ""), { mayBeDone: false });
  const isRefusal = reason.name === "ProtocolError";
  const isAlive = isRefusal || (isCall && code === "REQUEST_TIMEOUT");
  return new ServerFailure(wordsOf(reason, code), {
    mayBeDone: isCall && !isRefusal && !unsent.includes(code),
    isAlive,
  });
}

/** Words of the server do not stand in errors: they could be anything. */
function wordsOf(reason: Error, code: string): string {
  const known = Object.hasOwn(codes, code) ? codes[code] : undefined;
  if (known !== undefined) return known;
  if (reason instanceof OverLimit) return reason.message;
  if (reason.name === "ProtocolError") return `it refuses that (${/^-?\d{1,6}$/.exec(code)?.[0] ?? "no code"})`;
  if (reason instanceof SyntaxError) return "it sent something that is no JSON";
  if (reason.name === "ZodError") return "it sent something that is not of the protocol";
  return /^[A-Z0-9_]{2,60}$/.test(code) ? code : "it sent something that is not understood";
}

const meaningOf = (status: number): string => {
  if (status === 401 || status === 403) return ": it does not let us in; look at its headers in config.yaml";
  if (status === 404 || status === 405) return ": there is no server of this protocol; look at its url in config.yaml";
  return status >= 300 && status < 400 ? ": it is elsewhere; look at its url in config.yaml" : "";
};
