import { Schema } from "effect"
import { setting } from "../../core/index.ts"

const between = (minimum: number, maximum: number) =>
  Schema.Int.check(Schema.isBetween({ minimum, maximum }))

export const Settings = Schema.Struct({
  model: setting(
    Schema.NonEmptyString,
    "svc-embed",
    "The model of the catalogue that embeds chunks and queries.",
  ),
  rerankModel: setting(Schema.NonEmptyString, "svc-rerank", "The model that `rerank: true` means."),
  rerankCandidates: setting(
    between(1, 64),
    32,
    "So many of the best places are reranked, or `top_k` where that is more.",
  ),
  chunkCharacters: setting(between(100, 9000), 1000, "The longest chunk of a text."),
  chunkOverlap: setting(
    between(0, 4500),
    200,
    "Characters that a chunk repeats of the one before; at most half of a chunk.",
  ),
  maxChunksPerFile: setting(
    between(1, 1_000_000),
    50_000,
    "Files with more chunks fail as too large.",
  ),
  maxPages: setting(between(1, 100_000), 5000, "Files with more pages fail as too large."),
  extractionSeconds: setting(between(1, 3600), 120, "The time that reading one file may take."),
  extractionMb: setting(
    between(256, 16_384),
    768,
    "The memory of the process that reads a file, in MB.",
  ),
  ingestHours: setting(
    between(1, 720),
    24,
    "From upload to `failed` at the latest, while a worker runs.",
  ),
  ingestsAtOnce: setting(between(1, 64), 2, "Short files that one process ingests at once."),
  longIngestsAtOnce: setting(between(1, 64), 2, "Long files beside the short ones."),
  leaseMs: setting(
    between(1000, 600_000),
    15_000,
    "After this time another worker goes on with the file of a dead one.",
  ),
  index: setting(
    Schema.Literals(["exact", "hnsw"]),
    "exact",
    "How vectors are searched: `exact`, or `hnsw` of pgvector.",
  ),
  device: Schema.optionalKey(Schema.NonEmptyString).annotate({
    description:
      "A provider of devices (`webgpu`): the exact scan of accounts with at least `deviceRows` vectors begins there.",
  }),
  deviceRows: setting(
    between(1, 10_000_000),
    200_000,
    "From so many vectors on an account's scan runs on the device.",
  ),
  cacheMb: setting(
    between(16, 4000),
    256,
    "Memory of the exact scan for vectors of accounts that asked lately, in MB.",
  ),
}).check(
  Schema.makeFilter(
    ({ chunkCharacters, chunkOverlap }) =>
      2 * chunkOverlap <= chunkCharacters || {
        path: ["chunkOverlap"],
        issue: "must be at most half of chunkCharacters",
      },
  ),
)
export type Settings = typeof Settings.Type
