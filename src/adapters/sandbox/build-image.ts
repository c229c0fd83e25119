import { join } from "node:path";
import { HostError } from "./host.ts";
import { Podman, remedyFor } from "./podman.ts";

export interface ImageOrder {
  readonly podman: string;
  readonly connection?: string | undefined;
  /** Name of the image. */
  readonly image: string;
  /** `tools` has no browser. */
  readonly target: "tools" | "browser";
  /** More packages of Debian. */
  readonly extra?: readonly string[];
  /** File with one more certificate authority, for packages that are fetched past a proxy which inspects TLS. */
  readonly ca?: string | undefined;
  /** Image to begin with, instead of the official one of Node.js. */
  readonly base?: string | undefined;
}

const context = join(import.meta.dirname, "image");
const linesKept = 20;

/**
 * Makes the image of sandboxes. Steps that were finished once are not done again, so an interrupted build is resumed by
 * the next. Gives a line for each step.
 * @throws HostError with the end of its output
 */
export async function* buildImage(order: ImageOrder): AsyncGenerator<string, void> {
  const { podman, connection, image, target, extra = [], ca, base } = order;
  const wrong = extra.find((name) => !/^[a-z0-9][a-z0-9.+-]*$/.test(name));
  if (wrong !== undefined)
    throw new HostError(`${JSON.stringify(wrong)} is no name of a package`, "Write names of Debian packages.");
  const build = new Podman(podman, connection).lines([
    ...["build", "--format", "docker", "--layers", "--network", "host"],
    ...["--target", target, "--tag", image],
    ...(extra.length > 0 ? ["--build-arg", `EXTRA=${extra.join(" ")}`] : []),
    ...(base === undefined ? [] : ["--build-arg", `BASE=${base}`]),
    ...(ca === undefined ? [] : ["--secret", `id=ca,src=${ca}`]),
    context,
  ]);
  const last: string[] = [];
  for (;;) {
    const { value, done } = await build.next();
    if (done) {
      if (value.code === 0) return;
      throw new HostError(
        `the image cannot be made:\n${(last.length > 0 ? last : [value.says]).join("\n")}`,
        remedyFor(value.says) ?? "Mend what this says, and start it again: finished steps are kept.",
      );
    }
    const step = stepOf(value);
    if (step !== undefined) yield step;
    last.push(value);
    if (last.length > linesKept) last.shift();
  }
}

/** A step in words, if the line announces one. */
function stepOf(line: string): string | undefined {
  const [, stage, step, steps, action] = /^(?:\[(\d+\/\d+)\] )?STEP (\d+)\/(\d+): (.*)/.exec(line) ?? [];
  if (action === undefined) return undefined;
  const short = action.replaceAll(/\s+/g, " ").slice(0, 80);
  return `${stage === undefined ? "" : `part ${stage}, `}step ${step} of ${steps}: ${short}`;
}
