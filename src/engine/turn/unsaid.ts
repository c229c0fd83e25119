import { render } from "../../base/lmml/render.ts";
import { functionResult } from "../../base/prompt/ephemeris.ts";
import type { OperationRecord } from "../../domain/tables/operation-record.ts";

/** Told of a call that would have been heard by somebody who may not hear it. */
export const notSaid = "Not said: somebody has come who may not read all that it was made from.";

/** Replaces what is kept of such a call: `id` is the call's, `operations` are what it would have recorded. */
export const unsaidCall = (id: string, operations: readonly OperationRecord[]) => {
  const result = render(functionResult(id, notSaid));
  return {
    result: { result, spoke: false, ends: false, sources: [], taint: [], unsaid: true },
    ephemeris: [result],
    wakes: undefined,
    operations: operations.map((operation) =>
      operation.state === "done"
        ? { ...operation, state: "failed" as const, result: notSaid, error: notSaid }
        : operation,
    ),
    asks: false,
  };
};
