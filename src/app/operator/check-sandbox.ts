import { openHost, specOf } from "../../adapters/sandbox/open-host.ts";
import { type CheckSetting, type Finding, failed, ok, warning } from "./check-finding.ts";

const meanwhile = "Until then agents cannot run commands; everything else works.";

/** Checks that conversations can have computers. Clevernet works without; one without its walls is a failure. */
export async function* checkSandbox({ clock, config: { sandbox } }: CheckSetting): AsyncGenerator<Finding> {
  if (sandbox.hosts.length === 0) {
    yield ok("sandbox", "it is off: agents cannot run commands.");
    return;
  }
  const labels = { "clevernet.purpose": "check" };
  for (const { engine, name } of sandbox.hosts) {
    const of = sandbox.hosts.length > 1 ? `${name}, ` : "";
    for await (const finding of openHost(engine, clock).check(specOf(sandbox, "clevernet", labels))) {
      const { point, state, says, remedy = "" } = finding;
      const text = `${of}${point}: ${says}`;
      if (state === "ok") yield ok("sandbox", text);
      else if (state === "unsafe") yield failed("sandbox", text, remedy);
      else yield warning("sandbox", text, `${remedy.replace(/\.?$/, ".")} ${meanwhile}`);
    }
  }
}
