import { Schema } from "effect"
import { setting } from "../../core/index.ts"

const pollMs = 500
const keepDeadDays = 30

export const Settings = Schema.Struct({
  pollMs: setting(
    Schema.Int.check(Schema.isBetween({ minimum: 50, maximum: 60_000 })),
    pollMs,
    "The delay with which jobs of other processes may be noticed. Jobs of this process, and delayed jobs, begin at their time.",
  ),
  keepDeadDays: setting(
    Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 3_650 })),
    keepDeadDays,
    "How long dead letters are kept.",
  ),
})
export type Settings = typeof Settings.Type
