import { Schema } from "effect"
import { megabyte, setting } from "../../core/index.ts"

const upTo = (maximum: number) => Schema.Int.check(Schema.isBetween({ minimum: 1, maximum }))

export const Settings = Schema.Struct({
  maxFileMb: setting(upTo(10_000), 100, "The largest file in MB."),
  quotaMb: setting(upTo(10_000_000), 1024, "MB of files of one account, in each mode."),
  keepDays: setting(upTo(3650), 30, "How long a file is kept from its upload on."),
})
export type Settings = typeof Settings.Type

const dayMs = 24 * 3_600_000

export interface FileLimits {
  readonly maxFileBytes: number
  /** The quota of one account and mode. */
  readonly quotaBytes: number
  /** The number of files and open uploads, as empty files need rows, too. */
  readonly maxFiles: number
  /** From upload to expiry. */
  readonly keepMs: number
}

export const limitsOf = ({ maxFileMb, quotaMb, keepDays }: Settings): FileLimits => ({
  maxFileBytes: maxFileMb * megabyte,
  quotaBytes: quotaMb * megabyte,
  maxFiles: 100_000,
  keepMs: keepDays * dayMs,
})
