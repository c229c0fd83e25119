import { z } from "zod";

/** Names an event in a call: by the number under which it is shown, which models also write as a number, or by its id. */
export const eventName = z.preprocess(
  (value) => (typeof value === "number" ? String(value) : value),
  z.string().trim().min(1).max(255),
);
