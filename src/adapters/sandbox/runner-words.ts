import { z } from "zod";
import { ProtocolError } from "./protocol.ts";

/** End of a command. Its own words: a hostile command may choose its code and its output, and nothing else. */
export interface CommandEnd {
  /** Exit code; null where a signal ended it. */
  readonly code: number | null;
  readonly signal: number | null;
  /** `ended` by itself; at its time limit; by `kill`; or its supervisor was lost, and its result with it. */
  readonly reason: "ended" | "timeout" | "killed" | "lost";
  /** Bytes of output until then, whether or not they are still kept. */
  readonly size: number;
}

/** A command that the runner keeps. */
export interface KeptCommand {
  readonly id: string;
  /** Offset of the first byte of output that is still kept. */
  readonly start: number;
  /** Offset behind the last one. */
  readonly size: number;
  /** True if something of it still runs: itself, or what it has left in the background. */
  readonly isLeft: boolean;
  /** Null while it runs. */
  readonly end: CommandEnd | null;
}

/** A piece of output. */
export interface CommandOutput {
  /** Offset in the whole output, stdout and stderr together. Larger than expected: what is between is dropped. */
  readonly at: number;
  readonly stream: "stdout" | "stderr";
  readonly data: Buffer;
}

const count = z.number().int().min(0);
const end = z.object({
  code: z.number().int().nullable(),
  signal: z.number().int().nullable(),
  reason: z.enum(["ended", "timeout", "killed", "lost"]),
  size: count,
});
const commands = z
  .array(z.object({ id: z.string().max(100), start: count, size: count, isLeft: z.boolean(), end: end.nullable() }))
  .max(1_000);

const shapes = {
  hello: z.object({ version: z.number(), boot: z.string().min(16).max(64), window: count, commands }),
  list: z.object({ commands }),
  disk: z.object({ bytes: count, files: count.nullable() }),
  started: z.object({ isNew: z.boolean() }),
  taken: z.object({ taken: count }),
  end,
  out: z.object({ at: count, stream: z.union([z.literal(1), z.literal(2)]) }),
  refused: z.object({ code: z.string().max(100), says: z.string().max(10_000) }),
  opened: z.object({ ch: z.number().int().negative(), port: count }),
};

/** @throws ProtocolError where the runner says something else than it may */
export function readWords<Name extends keyof typeof shapes>(
  name: Name,
  fields: unknown,
): z.output<(typeof shapes)[Name]> {
  const result = shapes[name].safeParse(fields);
  if (!result.success) throw new ProtocolError(`the runner's ${name}: ${z.prettifyError(result.error)}`);
  return result.data as z.output<(typeof shapes)[Name]>;
}
