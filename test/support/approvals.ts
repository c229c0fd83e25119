import type { BlankingParts } from "../../src/edges/routing/blanking.ts";

/** For tests in which nothing is asked of people. */
export const noApprovals: BlankingParts["approvals"] = { withdrawBlanked: async () => {} };
