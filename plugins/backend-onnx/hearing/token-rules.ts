import type { HearingTokens } from "./hearing-config.ts"

const never = Number.NEGATIVE_INFINITY

/** Natural logarithm of the sum of exponentials of logits from `first` to `end`. */
export const logSum = (logits: Float32Array, first = 0, end = logits.length): number => {
  let most = never
  for (let i = first; i < end; i++) most = Math.max(most, logits[i]!)
  if (most === never) return never
  let sum = 0
  for (let i = first; i < end; i++) sum += Math.exp(logits[i]! - most)
  return most + Math.log(sum)
}

const most = (logits: Float32Array, end: number): number => {
  let found = never
  for (let i = 0; i < end; i++) found = Math.max(found, logits[i]!)
  return found
}

/**
 * Which tokens a window may go on with: none of those that a model suppresses, and times in pairs
 * that rise (Whisper's decoding.py, `ApplyTimestampRules`).
 */
export class TokenRules {
  private readonly tokens: HearingTokens
  private readonly withTimes: boolean
  private readonly special: ReadonlySet<number>

  constructor(tokens: HearingTokens, withTimes: boolean) {
    this.tokens = tokens
    this.withTimes = withTimes
    this.special = new Set([...tokens.special, tokens.end])
  }

  /** Overwrites the logits of tokens that may not follow those of the window so far. */
  apply(logits: Float32Array, written: readonly number[]): void {
    const { suppressed, suppressedFirst } = this.tokens
    for (const token of suppressed) logits[token] = never
    if (written.length === 0) for (const token of suppressedFirst) logits[token] = never
    if (this.withTimes) this.applyTimes(logits, written)
    else if (this.tokens.firstTimestamp !== undefined)
      logits.fill(never, this.tokens.firstTimestamp)
  }

  private applyTimes(logits: Float32Array, written: readonly number[]): void {
    const { noTimestamps, firstTimestamp: begin = 0, latestFirstTimestamp } = this.tokens
    if (noTimestamps !== undefined) logits[noTimestamps] = never
    const isTime = (token: number | undefined) => token !== undefined && token >= begin
    const afterTime = isTime(written.at(-1))
    const afterPair = afterTime && (written.length < 2 || isTime(written.at(-2)))
    if (afterPair) logits.fill(never, begin)
    else if (afterTime) this.hideText(logits, begin)
    const last = written.findLast(isTime)
    // a segment ends where the next begins, but has some length
    if (last !== undefined) logits.fill(never, begin, afterTime && !afterPair ? last : last + 1)
    if (written.length === 0) {
      logits.fill(never, 0, begin)
      if (latestFirstTimestamp !== undefined) logits.fill(never, begin + latestFirstTimestamp + 1)
    }
    if (logSum(logits, begin) > most(logits, begin)) logits.fill(never, 0, begin)
  }

  private hideText(logits: Float32Array, begin: number): void {
    for (let token = 0; token < begin; token++) if (!this.special.has(token)) logits[token] = never
  }
}
