import type { MatrixClient } from "../../adapters/matrix/client.ts";
import { digest, type RoomId, secret } from "../../base/lib/ids.ts";
import type { Agent, AgentDirectory } from "./agent.ts";

/** Makes an agent's user, device and profile what they should be; what was done before is not asked again. */
export async function introduce(agent: Agent, client: MatrixClient, directory: AgentDirectory): Promise<void> {
  if (!agent.isRegistered) {
    await client.register(agent.userId);
    await client.putDevice(agent.userId, agent.deviceId);
    await directory.table.markRegistered(agent.name);
  }
  const content = { displayName: agent.displayName, avatar: agent.settings.avatar };
  const profile = digest("profile", content.displayName, content.avatar ?? "");
  if (agent.profile === profile) return;
  const draft = {
    // Told once by `tellProfile`; an agent may have had this profile before, or been told of it before a restore.
    key: secret(16),
    roomId: agent.userId as string as RoomId,
    sender: agent.userId,
  };
  await directory.table.tellProfile(agent.name, profile, { ...draft, kind: "profile", content });
}
