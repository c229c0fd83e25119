import { z } from "zod";

const what = "the operation's number";

/** An operation as people name it in commands. */
export const operationNumber = z.coerce
  .number(what)
  .int(what)
  .positive(what)
  .max(Number.MAX_SAFE_INTEGER, what)
  .describe("The operation's number, as its card says it");
