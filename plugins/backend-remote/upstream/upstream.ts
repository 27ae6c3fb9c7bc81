import type { Clock } from "../../../core/services/clock.ts"
import type { Feature, Kind } from "../kinds.ts"
import { kinds } from "../kinds.ts"
import type { UpstreamOptions } from "../options.ts"
import type { Connection } from "./connection.ts"
import { type UpstreamFailure, verdicts } from "./failure.ts"

export interface EjectionRules {
  readonly ejectAfter: number
  readonly ejectMs: number
  readonly slowStartMs: number
}

const mostEjectMs = 300_000
/** What an upstream that is back gets at once of its share. */
const leastShare = 0.1

/**
 * One server behind a model, and what is known of its state.
 *
 * States: well -> ejected (failures in a row, or a health check that fails) -> well again when its
 * time is over or a check succeeds, with a share that grows. A 429 pauses it without ejecting it.
 */
export class Upstream {
  readonly name: string
  readonly options: UpstreamOptions
  readonly connection: Connection
  readonly kind: Kind
  /** What it keeps: by its kind, by what it says of itself, and by config, which is always right. */
  features: ReadonlySet<Feature>
  outstanding = 0
  /** What the last health check found. */
  trouble: string | undefined
  private failures = 0
  private ejections = 0
  private ejectedUntilMs = 0
  private pausedUntilMs = 0
  private backSinceMs = Number.NEGATIVE_INFINITY
  private readonly clock: Clock
  private readonly rules: EjectionRules

  constructor(
    name: string,
    options: UpstreamOptions,
    connection: Connection,
    rules: EjectionRules,
    clock: Clock,
  ) {
    this.name = name
    this.options = options
    this.connection = connection
    this.rules = rules
    this.clock = clock
    this.kind = kinds[options.kind]
    this.features = this.featuresWith({})
  }

  /** Takes what the server says it can do. */
  learn(can: Partial<Record<Feature, boolean>>): void {
    this.features = this.featuresWith(can)
  }

  private featuresWith(can: Partial<Record<Feature, boolean>>): ReadonlySet<Feature> {
    const { keeps, lacks } = this.options
    const found = new Set(this.kind.keeps)
    for (const [feature, isKept] of Object.entries(can) as [Feature, boolean][])
      if (isKept) found.add(feature)
      else found.delete(feature)
    return new Set([...found, ...keeps].filter((feature) => !lacks.includes(feature)))
  }

  isEjected(): boolean {
    return this.trouble !== undefined || this.clock.monotonicMs() < this.ejectedUntilMs
  }

  isPaused(): boolean {
    return this.clock.monotonicMs() < this.pausedUntilMs
  }

  /** Its weight, less while it is warming up. */
  share(): number {
    const { slowStartMs } = this.rules
    const sinceMs = this.clock.monotonicMs() - Math.max(this.backSinceMs, this.ejectedUntilMs)
    const isWarm = this.ejections === 0 && this.backSinceMs === Number.NEGATIVE_INFINITY
    if (isWarm || slowStartMs === 0 || sinceMs >= slowStartMs) return this.options.weight
    return this.options.weight * Math.max(leastShare, sinceMs / slowStartMs)
  }

  /** An answer has begun. Returns how many failures in a row came before it. */
  succeeded(): number {
    const { failures } = this
    this.failures = 0
    // long after its last ejection its record is clean
    if (this.clock.monotonicMs() - this.ejectedUntilMs > mostEjectMs) this.ejections = 0
    return failures
  }

  /**
   * Returns whether this ejects it. `before`: the failures in a row before an answer that began, and
   * broke off: it was no success.
   */
  failed({ kind, retryAfterMs }: UpstreamFailure, before = 0): boolean {
    const nowMs = this.clock.monotonicMs()
    if (retryAfterMs !== undefined) this.pausedUntilMs = nowMs + retryAfterMs
    if (!verdicts[kind].counts) return false
    this.failures = Math.max(this.failures, before) + 1
    if (this.failures < this.rules.ejectAfter || nowMs < this.ejectedUntilMs) return false
    this.failures = 0
    this.ejectedUntilMs =
      nowMs + Math.min(mostEjectMs, this.rules.ejectMs * 2 ** Math.min(this.ejections, 20))
    this.ejections++
    return true
  }

  /** Takes the result of a health check. Returns whether it is news. */
  checked(trouble: string | undefined): boolean {
    const before = this.trouble
    this.trouble = trouble
    if (before !== undefined && trouble === undefined) this.backSinceMs = this.clock.monotonicMs()
    return before !== trouble
  }
}
