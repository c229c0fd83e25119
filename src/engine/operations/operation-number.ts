import { z } from "zod";

/** An operation as people name it in commands. */
export const operationNumber = z.int().min(1).describe("The operation's number, as its card says it");
