import { messageOf, RetryError, UserError } from "../../base/lib/errors.ts";

/**
 * Says why a statement failed, by its SQLSTATE or the driver's code:
 * - `lost`: the connection went away, and the statement may have been carried out
 * - `collision`: another statement was in its way
 * - `unavailable`: the database is unwell: no space, no more connections, read-only, shutting down
 * - `input`: it cannot take what it was given
 * - `bug`: anything else
 */
export type DatabaseFailure = "lost" | "collision" | "unavailable" | "input" | "bug";

const failures: readonly (readonly [RegExp, DatabaseFailure])[] = [
  [/^(CONNECTION_\w+|CONNECT_TIMEOUT|ECONNREFUSED|ECONNRESET|EPIPE|57P0[123])$/, "lost"],
  [/^(ETIMEDOUT|EHOSTUNREACH|ENETUNREACH|ENOTFOUND|EAI_AGAIN)$/, "lost"],
  [/^(40001|40P01)$/, "collision"],
  [/^(08...|53...|57P..|58...|25006)$/, "unavailable"],
  [/^(22...|54...)$/, "input"],
];

export function failureOf(error: unknown): DatabaseFailure {
  const code = error instanceof Error && "code" in error ? String(error.code) : "";
  return failures.find(([codes]) => codes.test(code))?.[1] ?? "bug";
}

/** The error as everybody else knows it: only here is it looked up what the database means. */
export function translate(error: unknown): unknown {
  const failure = failureOf(error);
  const cause = { cause: error };
  if (failure === "bug") return error;
  if (failure !== "input") return new RetryError(`the database is unwell: ${messageOf(error)}`, cause);
  return new UserError(
    `The database cannot take this: ${messageOf(error)}. Write it shorter, or with smaller numbers.`,
    cause,
  );
}
