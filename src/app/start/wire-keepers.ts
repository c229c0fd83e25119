import type { Database } from "../../adapters/database/connection.ts";
import type { Leases } from "../../adapters/database/leases.ts";
import type { MatrixClient } from "../../adapters/matrix/client.ts";
import { EmbeddingKeeper } from "../../domain/memory/embedding-keeper.ts";
import type { Embeddings } from "../../domain/memory/embeddings.ts";
import type { Rights } from "../../domain/rights/rights.ts";
import type { Events } from "../../domain/tables/events.ts";
import { IdleConversations } from "../../domain/tables/idle-conversations.ts";
import { InteractionVectors } from "../../domain/tables/interaction-vectors.ts";
import { Knowledge } from "../../domain/tables/knowledge.ts";
import { KnowledgeOffers } from "../../domain/tables/knowledge-offers.ts";
import { KnowledgeVectors } from "../../domain/tables/knowledge-vectors.ts";
import { MemoryUpkeep } from "../../domain/tables/memory-upkeep.ts";
import type { Outbox } from "../../domain/tables/outbox.ts";
import { PastReadings } from "../../domain/tables/past-readings.ts";
import { RedactionMarks } from "../../domain/tables/redaction-marks.ts";
import { SilenceTable } from "../../domain/tables/silences.ts";
import { WrittenFiles } from "../../domain/tables/written-files.ts";
import type { Judge } from "../../edges/routing/judge.ts";
import { MediaKeeper, type MediaKeeperParts } from "../../edges/routing/media-keeper.ts";
import { MemoryKeeper } from "../../edges/routing/memory-keeper.ts";
import { PastKeeper } from "../../edges/routing/past-keeper.ts";
import { RedactionKeeper } from "../../edges/routing/redaction-keeper.ts";
import type { Approvals } from "../../engine/operations/approvals.ts";
import { TimeKeeper, type TimeKeeperParts } from "../../engine/turn/time-keeper.ts";

interface Setting extends MediaKeeperParts, Omit<TimeKeeperParts, "idle" | "rights" | "silences"> {
  readonly rights: Rights;
  readonly database: Database;
  readonly events: Events;
  readonly outbox: Outbox;
  readonly judge: Judge;
  readonly approvals: Approvals;
  readonly client: Pick<MatrixClient, "access" | "messagesBefore">;
  readonly historyMessages: number;
  readonly historyDays: number;
  readonly embeddings: Embeddings;
  readonly leases: Pick<Leases, "holds" | "onGain">;
  readonly onEmbedded: (count: number) => void;
  readonly onOutbox: ConstructorParameters<typeof RedactionKeeper>[0]["onOutbox"];
}

/** Makes the parts that work beside the routing of events, on what its rows leave to do. */
export function wireKeepers(setting: Setting) {
  const { database, embeddings, judge } = setting;
  const marks = new RedactionMarks(database);
  return {
    media: new MediaKeeper(setting),
    redactions: new RedactionKeeper({ ...setting, marks, files: new WrittenFiles(database) }),
    time: new TimeKeeper({ ...setting, silences: new SilenceTable(database), idle: new IdleConversations(database) }),
    embeddings,
    embedding: new EmbeddingKeeper({
      ...setting,
      vectors: new InteractionVectors(database),
      knowledge: new KnowledgeVectors(database),
    }),
    memory: new MemoryKeeper({
      ...setting,
      upkeep: new MemoryUpkeep(database),
      knowledge: new Knowledge(database),
      offers: new KnowledgeOffers(database),
      kindOf: judge.kindOf,
      isCommand: (event) => judge.isCommand(event),
    }),
    past: new PastKeeper({
      ...setting,
      readings: new PastReadings(database, setting),
      kindOf: judge.kindOf,
      ignores: judge.ignores,
      isCommand: (event) => judge.isCommand(event),
    }),
  };
}
