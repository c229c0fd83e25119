import { z } from "zod";
import { defineTool } from "../../engine/operations/tool.ts";

export const tool = defineTool({
  name: "get_host_port",
  set: "sandbox",
  command: "port",
  examples: ["3000"],
  topic: "sandbox",
  description: "Makes a port of the computer reachable on the bridge's machine, for its operator.",
  help: "Makes a server that runs in the computer of this conversation reachable on the machine of the bridge, until the computer stops or the bridge is started again.",
  wording: "Make port {container_port} reachable",
  kind: "read",
  isRepeatable: true,
  check: (_, { files }) => files.requireOpenComputer(),
  input: z.object({
    container_port: z.int32().min(1).max(65_535).meta({
      description: "Port that its server listens on",
      help: "The port on which the server listens there",
    }),
  }),
  async run({ container_port: inside }, { agent, files, hostPorts, roomId }) {
    await files.requireOpenComputer();
    const port = await hostPorts.open({ agent: agent.name, roomId }, inside);
    return {
      result: `Port ${inside} of the computer is at http://127.0.0.1:${port}/ on the machine of the bridge, until the computer stops or the bridge is started again.`,
    };
  },
});
