import { Effect, Schema } from "effect"
import { megabyte } from "../../core/index.ts"

const or = <S extends Schema.Top & { readonly Encoded: number }>(schema: S, value: S["Encoded"]) =>
  schema.pipe(Schema.withDecodingDefaultKey(Effect.succeed(value)))
const from = (minimum: number, maximum: number) =>
  Schema.Int.check(Schema.isBetween({ minimum, maximum }))

export const Settings = Schema.Struct({
  maxLines: or(from(1, 1_000_000), 50_000),
  maxLineMb: or(from(1, 50), 8),
  windowHours: or(from(1, 720), 24),
  /** Lines that run at once in one process; accounts share them evenly. */
  linesAtOnce: or(from(1, 1_024), 64),
  /** Limit for input and answers in memory. */
  memoryMb: or(from(8, 4_096), 64),
  /** Batches that run at once in one process. */
  batchesAtOnce: or(from(1, 256), 16),
  pollMs: or(from(10, 60_000), 5_000),
  /** After this time another worker takes over the batch of a dead one. */
  leaseMs: or(from(200, 600_000), 15_000),
})
export type Settings = typeof Settings.Type

export interface BatchLimits {
  readonly maxLines: number
  readonly maxLineBytes: number
  readonly windowMs: number
  /**
   * From its creation to `expires_at` of a batch; result files are kept for the same time from
   * their own creation.
   */
  readonly keepMs: number
  readonly linesAtOnce: number
  readonly memoryBytes: number
  readonly batchesAtOnce: number
  readonly pollMs: number
  readonly leaseMs: number
}

const hourMs = 3_600_000

export const limitsOf = ({
  maxLines,
  maxLineMb,
  windowHours,
  memoryMb,
  linesAtOnce,
  batchesAtOnce,
  pollMs,
  leaseMs,
}: Settings): BatchLimits => ({
  maxLines,
  maxLineBytes: maxLineMb * megabyte,
  windowMs: windowHours * hourMs,
  keepMs: 30 * 24 * hourMs,
  linesAtOnce,
  memoryBytes: memoryMb * megabyte,
  batchesAtOnce,
  pollMs,
  leaseMs,
})
