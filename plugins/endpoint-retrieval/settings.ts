import { Effect, Schema } from "effect"

const or = <S extends Schema.Top>(schema: S, value: S["Encoded"]) =>
  schema.pipe(Schema.withDecodingDefaultKey(Effect.succeed(value)))
const between = (minimum: number, maximum: number) =>
  Schema.Int.check(Schema.isBetween({ minimum, maximum }))

export const Settings = Schema.Struct({
  /** The model of the catalogue that embeds chunks and queries. */
  model: or(Schema.NonEmptyString, "svc-embed"),
  /** The model that `rerank: true` means. */
  rerankModel: or(Schema.NonEmptyString, "svc-rerank"),
  /** So many of the best places are reranked, or `top_k` where that is more. */
  rerankCandidates: or(between(1, 64), 32),
  chunkCharacters: or(between(100, 9000), 1000),
  /** Characters that a chunk repeats of the one before; at most half of a chunk. */
  chunkOverlap: or(between(0, 4500), 200),
  /** Larger files fail as too large. */
  maxChunksPerFile: or(between(1, 1_000_000), 50_000),
  maxPages: or(between(1, 100_000), 5000),
  /** The time that reading one file may take, and the memory of the process that does it. */
  extractionSeconds: or(between(1, 3600), 120),
  extractionMb: or(between(256, 16_384), 768),
  /** From upload to `failed` at the latest, while a worker runs. */
  ingestHours: or(between(1, 720), 24),
  /** Short files that one process ingests at once, and long ones beside them. */
  ingestsAtOnce: or(between(1, 64), 2),
  longIngestsAtOnce: or(between(1, 64), 2),
  /** After this time another worker goes on with the file of a dead one. */
  leaseMs: or(between(1000, 600_000), 15_000),
  /** `exact`, or `hnsw` of pgvector. */
  index: or(Schema.Literals(["exact", "hnsw"]), "exact"),
  /**
   * A provider of devices (`webgpu`): the exact scan of accounts with at least `deviceRows` vectors
   * begins there.
   */
  device: Schema.optionalKey(Schema.NonEmptyString),
  deviceRows: or(between(1, 10_000_000), 200_000),
  /** Memory of the exact scan for vectors of accounts that asked lately. */
  cacheMb: or(between(16, 4000), 256),
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
