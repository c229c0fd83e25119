/**
 * Settings by which statements are planned. Each is planned once: that takes longer than most take to run. A plan that
 * was made while its tables were almost empty still serves when they are large, so it reads no table whole that has an
 * index for it; what PostgreSQL 17 and older reckon where none has is no reason to compile the statement.
 */
export const planning = {
  plan_cache_mode: "force_generic_plan",
  enable_seqscan: "off",
  jit: "off",
  // Of pgvector: an index goes on where a wall or a filter leaves little of what it found first.
  "hnsw.iterative_scan": "relaxed_order",
  "hnsw.ef_search": "100",
  "hnsw.max_scan_tuples": "100000",
};
