import { Schema } from "effect"
import { megabyte, setting } from "../../core/index.ts"

const from = (minimum: number, maximum: number) =>
  Schema.Int.check(Schema.isBetween({ minimum, maximum }))

export const Settings = Schema.Struct({
  maxLines: setting(from(1, 1_000_000), 50_000, "Most lines of a batch."),
  maxLineMb: setting(from(1, 50), 8, "The longest line in MB."),
  windowHours: setting(
    from(1, 720),
    24,
    "How long a batch may run, the `completion_window`; lines that are left then expire.",
  ),
  linesAtOnce: setting(
    from(1, 1_024),
    64,
    "Lines that run at once in one process; accounts share them evenly.",
  ),
  memoryMb: setting(from(8, 4_096), 64, "Limit for input and answers in memory."),
  batchesAtOnce: setting(from(1, 256), 16, "Batches that run at once in one process."),
  pollMs: setting(
    from(10, 60_000),
    5_000,
    "How often a process looks for batches that another one made or left.",
  ),
  leaseMs: setting(
    from(200, 600_000),
    15_000,
    "After this time another worker takes over the batch of a dead one.",
  ),
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
