import { type Conversation, digest } from "../../base/lib/ids.ts";
import type { SandboxTable } from "../tables/sandboxes.ts";

/** Label of all sandboxes of an installation. */
const installationLabel = "clevernet.installation";

/** Names and labels by which hosts know the sandboxes of this installation. */
export class SandboxNames {
  readonly #table: Pick<SandboxTable, "installation">;
  readonly #homeserver: string;
  #installation: Promise<string> | undefined;

  /** @param homeserver a copy of the database that serves another one touches none of our sandboxes */
  constructor(table: Pick<SandboxTable, "installation">, homeserver: string) {
    this.#table = table;
    this.#homeserver = homeserver;
  }

  /** Lower-case letters and digits, as names of sandboxes have to be. */
  async of({ agent, roomId }: Conversation): Promise<string> {
    const { value } = await this.label();
    const id = digest("sandbox", value, agent, roomId);
    return `clevernet-${Buffer.from(id, "base64url").toString("hex").slice(0, 24)}`;
  }

  /** Label of all that are ours. */
  async label(): Promise<{ readonly name: string; readonly value: string }> {
    this.#installation ??= this.#table.installation().catch((error: unknown) => {
      this.#installation = undefined;
      throw error;
    });
    return { name: installationLabel, value: digest("installation", await this.#installation, this.#homeserver) };
  }
}
