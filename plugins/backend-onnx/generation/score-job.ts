import { assertLogits } from "../sampling/sampler.ts"
import type { DecoderEvent, ScoreRequest } from "./decoder-jobs.ts"
import { prefillChunk } from "./generate-job.ts"
import type { KvCache } from "./kv-cache.ts"
import type { Model } from "./model.ts"

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

/**
 * Scores prompts one after the other by P(yes) / (P(yes) + P(no)) of the next token; the prefix
 * that a prompt shares with the one before it (instruction and query) is not computed again.
 */
export class ScoreJob {
  readonly isPrefilling = true
  private readonly model: Model
  private readonly request: ScoreRequest
  private readonly emit: (event: DecoderEvent) => void
  private cache: KvCache
  private index = 0
  private before = 0

  constructor(model: Model, request: ScoreRequest, emit: (event: DecoderEvent) => void) {
    this.model = model
    this.request = request
    this.emit = emit
    this.cache = this.newCache(request.prompts[0]?.length ?? 0)
  }

  private newCache(reach: number): KvCache {
    const longest = Math.max(...this.request.prompts.map((ids) => ids.length))
    return this.model.session.newCache(longest, { reach })
  }

  async prefill(): Promise<boolean> {
    const ids = this.request.prompts[this.index]!
    const chunk = ids.subarray(this.cache.length, this.cache.length + prefillChunk)
    const isLast = this.cache.length + chunk.length === ids.length
    const logits = await this.model.session.forward(this.cache, chunk, isLast)
    if (!isLast) return false
    this.finishPrompt(ids, logits)
    return this.index === this.request.prompts.length
  }

  spent(): void {}

  release(): void {}

  private finishPrompt(ids: Int32Array, logits: Float32Array): void {
    this.before += ids.length
    this.emit({
      type: "prefilled",
      inputTokens: this.before,
      cacheReadTokens: 0,
      cacheWriteTokens: 0,
    })
    assertLogits(logits)
    const [yes, no] = [
      logSumExp(logits, this.request.yesTokens),
      logSumExp(logits, this.request.noTokens),
    ]
    this.emit({ type: "score", index: this.index, score: 1 / (1 + Math.exp(no - yes)) })
    this.index++
    const next = this.request.prompts[this.index]
    if (!next) return
    if (this.cache.isLong !== this.model.session.isLong(next.length))
      this.cache = this.newCache(next.length)
    // the last token is computed again, for its logits
    else this.cache.rewind(Math.min(sharedPrefix(ids, next), next.length - 1))
  }
}
