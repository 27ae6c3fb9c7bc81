import { assertLogits } from "../sampling/sampler.ts"
import type { DecoderEvent, ScoreRequest } from "./decoder-jobs.ts"
import { prefixOwner } from "./job-prefix.ts"
import type { KvCache } from "./kv-cache.ts"
import type { Model } from "./model.ts"
import { StageTimes } from "./stage-times.ts"

const logSumExp = (logits: Float32Array, ids: readonly number[]): number => {
  const chosen = ids.map((id) => logits[id]!)
  const largest = Math.max(...chosen)
  return largest + Math.log(chosen.reduce((sum, logit) => sum + Math.exp(logit - largest), 0))
}

const sharedPrefix = (a: Int32Array, b: Int32Array): number => {
  let length = 0
  while (length < a.length && length < b.length && a[length] === b[length]) length++
  return length
}

const none = new Int32Array()

/** The length of what all begin with; of one alone, its own. */
const commonPrefix = ([first = none, ...others]: readonly Int32Array[]): number =>
  others.reduce((least, ids) => Math.min(least, sharedPrefix(first, ids)), first.length)

/**
 * Scores prompts one after the other by P(yes) / (P(yes) + P(no)) of the next token. The prefix
 * that they share (instruction and query) is computed once: it is taken from the prefix cache, or
 * stays from the prompt before. A score has the same bits whatever was read before it: where the
 * session's numbers depend on chunks, only whole ones are taken over.
 */
export class ScoreJob {
  readonly isPrefilling = true
  private readonly model: Model
  private readonly request: ScoreRequest
  private readonly emit: (event: DecoderEvent) => void
  private readonly longest: number
  private cache: KvCache
  /** The tokens of which the cache has the first ones. */
  private cached: Int32Array = none
  private index = 0
  private before = 0
  private begun = false
  private readonly times: StageTimes
  private ended = false

  constructor(model: Model, request: ScoreRequest, emit: (event: DecoderEvent) => void) {
    this.model = model
    this.request = request
    this.emit = emit
    this.times = new StageTimes(emit)
    this.longest = Math.max(...request.prompts.map((ids) => ids.length))
    this.cache = this.newCache(request.prompts[0]?.length ?? 0)
  }

  private newCache(reach: number): KvCache {
    this.cached = none
    return this.model.session.newCache(this.longest, { reach })
  }

  private get owner(): string {
    return prefixOwner({ request: this.request, cache: this.cache })
  }

  private whole(tokens: number): number {
    return tokens - (tokens % this.model.session.prefixMultiple)
  }

  /** Takes over as many tokens as possible; the last one is computed again, for its logits. */
  private begin(ids: Int32Array): void {
    const { prefixes, session } = this.model
    if (this.cache.isLong !== session.isLong(ids.length)) {
      this.cache.release()
      this.cache = this.newCache(ids.length)
    }
    const most = ids.length - 1
    const found = prefixes.find(this.owner, ids, {
      most,
      multipleOf: session.prefixMultiple,
      breakpoints: [],
    })
    const own = this.whole(Math.min(sharedPrefix(this.cached, ids), this.cache.length, most))
    this.cache.rewind(own >= found.tokens ? own : 0)
    if (own < found.tokens) found.restoreInto(this.cache)
    this.cached = ids
    this.begun = true
  }

  async prefill(): Promise<boolean> {
    const ids = this.request.prompts[this.index]!
    if (!this.begun) this.begin(ids)
    const from = this.cache.length
    const to = this.model.session.chunkEnd(from, ids.length)
    const isLast = to === ids.length
    const logits = await this.model.session.read(this.cache, ids.subarray(from, to), isLast)
    if (!isLast) return false
    this.finishPrompt(ids, logits)
    return this.index === this.request.prompts.length
  }

  spent(stage: "prefill", durationMs: number): void {
    this.times.add(stage, durationMs)
  }

  release(): void {
    this.times.report("prefill")
    if (!this.ended) this.cache.release()
    this.ended = true
  }

  private finishPrompt(ids: Int32Array, logits: Float32Array): void {
    const { prompts, yesTokens, noTokens } = this.request
    this.before += ids.length
    this.emit({
      type: "prefilled",
      inputTokens: this.before,
      cacheReadTokens: 0,
      cacheWriteTokens: 0,
    })
    assertLogits(logits)
    const [yes, no] = [logSumExp(logits, yesTokens), logSumExp(logits, noTokens)]
    this.emit({ type: "score", index: this.index, score: 1 / (1 + Math.exp(no - yes)) })
    // documents are rarely read twice
    if (this.index === 0)
      this.model.prefixes.keep(this.owner, this.cache, {
        ids,
        tokens: this.whole(commonPrefix(prompts)),
        breakpoints: [],
      })
    this.index++
    this.begun = false
  }
}
