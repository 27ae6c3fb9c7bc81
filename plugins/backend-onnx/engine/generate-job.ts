import type { KvCache } from "./kv-cache.ts"
import type { GenerateRequest, LlamaEvent } from "./llama-jobs.ts"
import type { LlamaSession } from "./llama-session.ts"
import { seededRandom } from "./random.ts"
import { Sampler } from "./sampler.ts"
import type { EngineJob } from "./scheduler.ts"
import { TextStream } from "./text-stream.ts"

/** Tokens of a prompt that are read in one step. */
export const prefillChunk = 64

export interface Model {
  readonly session: LlamaSession
  readonly endTokens: ReadonlySet<number>
  bytesOf(token: number): Uint8Array
}

/** Writes one answer. prefill (a chunk a step) -> decode (a token a step) -> finished. */
export class GenerateJob implements EngineJob {
  private readonly model: Model
  private readonly request: GenerateRequest
  private readonly emit: (event: LlamaEvent) => void
  private readonly cache: KvCache
  private readonly sampler: Sampler
  private readonly text: TextStream
  private readonly spentMs = { prefill: 0, decode: 0 }
  private produced = 0
  private last = 0

  constructor(model: Model, request: GenerateRequest, emit: (event: LlamaEvent) => void) {
    this.model = model
    this.request = request
    this.emit = emit
    this.cache = model.session.newCache(request.promptIds.length + 1)
    this.sampler = new Sampler(request.sampler, seededRandom(request.seed))
    this.text = new TextStream(request.stop)
  }

  async step(): Promise<boolean> {
    const startedMs = performance.now()
    const prefilling = this.cache.length < this.request.promptIds.length
    const finished = await (prefilling ? this.prefill() : this.decode())
    this.spentMs[prefilling ? "prefill" : "decode"] += performance.now() - startedMs
    if (finished) for (const stage of ["prefill", "decode"] as const) this.emit({ type: "time", stage, durationMs: this.spentMs[stage] })
    return finished
  }

  private async prefill(): Promise<boolean> {
    const { promptIds } = this.request
    const chunk = promptIds.subarray(this.cache.length, this.cache.length + prefillChunk)
    const isLast = this.cache.length + chunk.length === promptIds.length
    const logits = await this.model.session.step(this.cache, chunk, isLast)
    this.emit({ type: "prefilled", inputTokens: this.cache.length })
    return isLast && this.take(logits)
  }

  private async decode(): Promise<boolean> {
    return this.take(await this.model.session.step(this.cache, [this.last], true))
  }

  private take(logits: Float32Array): boolean {
    this.last = this.sampler.next(logits)
    this.produced++
    const ended = this.model.endTokens.has(this.last)
    const { text, stopped } = this.text.push(ended ? new Uint8Array() : this.model.bytesOf(this.last))
    this.emit({ type: "token", text, outputTokens: this.produced })
    if (!ended && !stopped && this.produced < this.request.maxTokens) return false
    this.emit({ type: "finish", text: this.text.end(), reason: ended || stopped ? "stop" : "length" })
    return true
  }
}
