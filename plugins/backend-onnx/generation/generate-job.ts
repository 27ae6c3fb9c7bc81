import { type ChosenLogprobs, logprobsOf } from "../sampling/logprobs.ts"
import { seededRandom } from "../sampling/random.ts"
import { assertLogits, Sampler } from "../sampling/sampler.ts"
import { TokenPlaces } from "../sessions/token-places.ts"
import { AnswerText, bytesWith } from "./answer-text.ts"
import { type ConstrainedDecoder, constrainedDecoder } from "./constrained-decoding.ts"
import type { DecodeRow } from "./decode-banks.ts"
import type { DecoderEvent, GenerateRequest } from "./decoder-jobs.ts"
import { EmbeddedRows, tokensOnly } from "./embedded-rows.ts"
import { JobPrefix } from "./job-prefix.ts"
import type { KvCache } from "./kv-cache.ts"
import type { Beginning, Model, ReadPrompt } from "./model.ts"
import { PromptLookup } from "./prompt-lookup.ts"
import { StageTimes } from "./stage-times.ts"

/**
 * Generates one answer. States: prefilling (a chunk a turn) -> decoding (a token a step, or several
 * draft tokens) -> ended; a cancel ends it in any state.
 */
export class GenerateJob implements DecodeRow {
  readonly request: GenerateRequest
  readonly cache: KvCache
  readonly lookup = new PromptLookup()
  /** Tokens of the prompt and of the answer so far; all but the last are in the cache. */
  readonly ids: number[]
  ended = false
  private readonly model: Model
  private readonly emit: (event: DecoderEvent) => void
  private readonly sampler: Sampler
  private readonly embedded: EmbeddedRows
  private readonly constrained: ConstrainedDecoder | undefined
  private readonly text: AnswerText
  private readonly times: StageTimes
  private begun = false
  private readonly prefix: JobPrefix
  private isPromptRead = false
  /** How much of the cache is valid, since tokens were taken back. */
  private shortenedTo: number | undefined
  /** Logits that wait for a late grammar. */
  private held: Float32Array | undefined
  private readonly keepPrompt: Beginning["keep"]

  constructor(
    model: Model,
    request: GenerateRequest,
    emit: (event: DecoderEvent) => void,
    { prompt, keep }: Beginning = {},
  ) {
    this.model = model
    this.request = request
    this.emit = emit
    this.times = new StageTimes(emit, ["prefill", "decode"])
    this.keepPrompt = keep
    this.cache = model.session.newCache(1, {
      reach: request.promptIds.length + request.maxTokens,
      ...(request.adapter && { adapter: request.adapter }),
      ...(request.grids && { places: new TokenPlaces(request.promptIds, request.grids) }),
    })
    this.ids = [...request.promptIds]
    this.prefix = new JobPrefix(model, this)
    this.embedded = new EmbeddedRows(request)
    this.sampler = new Sampler(request.sampler, seededRandom(request.seed), request.promptIds)
    if (prompt) this.continueFrom(prompt)
    const { grammar } = request
    const bytesOf = bytesWith(model.bytesOf, request.markers)
    this.text = new AnswerText(request, model, bytesOf, emit)
    // last, because nothing after it may throw: it has to be released
    if (grammar) this.constrained = this.cache.orRelease(() => this.constrainedBy(grammar, bytesOf))
  }

  /** Its first token is chosen in the next step, like one whose mask was late. */
  private continueFrom({ cache, logits, wholeTokens }: ReadPrompt): void {
    this.begun = true
    this.isPromptRead = true
    this.cache.copyFrom(cache)
    this.prefix.wholeTokens = wholeTokens
    this.held = logits.slice()
  }

  private constrainedBy(
    { grammar, ...rest }: NonNullable<GenerateRequest["grammar"]>,
    bytesOf: Model["bytesOf"],
  ): ConstrainedDecoder {
    const { constraints, vocabulary, endTokens, textEncoder } = this.model
    const { markers = {}, maxTokens } = this.request
    const known = { maxTokens, vocabulary, endTokens, textEncoder, markers, bytesOf }
    return constrainedDecoder(constraints.open(grammar), this.sampler, { ...rest, ...known })
  }

  get isPrefilling(): boolean {
    return !this.isPromptRead
  }

  /** The next chunk would end the prompt, and its first token would wait for the grammar. */
  get mustWait(): boolean {
    return (
      this.constrained?.isReady === false &&
      (!this.begun || this.chunkEnd === this.request.promptIds.length)
    )
  }

  get last(): number {
    return this.ids.at(-1)!
  }

  /** Draft tokens from earlier occurrences in the text, at most as many as may still be written. */
  draftTokens(): readonly number[] {
    return tokensOnly(this.lookup.draft(this.ids)).slice(0, this.left - 1)
  }

  spent(stage: "prefill" | "decode", durationMs: number): void {
    this.times.add(stage, durationMs)
    if (stage === "prefill" && !this.isPrefilling) this.times.report(stage)
  }

  /**
   * Restores a prefix from the cache, as late as possible: an earlier request may have computed it
   * meanwhile.
   */
  private restore(): void {
    this.begun = true
    // at once: growing with each chunk would copy what was read
    this.cache.reserve(this.request.promptIds.length + 1)
    this.prefix.restore()
  }

  private get chunkEnd(): number {
    return this.model.session.chunkEnd(this.cache.length, this.request.promptIds.length)
  }

  /** Computes the next chunk of the prompt. Returns true when the answer is complete. */
  async prefill(): Promise<boolean> {
    if (!this.begun) this.restore()
    const { promptIds } = this.request
    const [from, to] = [this.cache.length, this.chunkEnd]
    const isLast = to === promptIds.length
    this.isPromptRead = isLast
    const [chunk, rows] = [promptIds.subarray(from, to), this.embedded.within(from, to)]
    const logits = await this.model.session.read(this.cache, chunk, isLast, rows)
    this.prefix.chunkRead(from, to)
    this.emit({
      type: "prefilled",
      inputTokens: to,
      cacheReadTokens: Math.min(to, this.prefix.readTokens),
      cacheWriteTokens: isLast ? this.prefix.keepMarked() : 0,
    })
    if (isLast) this.sharePrompt(logits)
    return isLast && this.take(logits)
  }

  private sharePrompt(logits: Float32Array): void {
    if (!this.keepPrompt || this.ended) return
    const cache = this.model.session.newCache()
    cache.copyFrom(this.cache)
    this.keepPrompt({ cache, logits: logits.slice(), wholeTokens: this.prefix.wholeTokens })
  }

  /** Called after each step. */
  stepped(): void {
    if (!this.ended) this.prefix.stepped()
  }

  private get left(): number {
    return this.request.maxTokens - this.text.length
  }

  /** Its mask is later than the forward pass: it is left out of a step, and tried with `retry`. */
  get isLate(): boolean {
    return this.held !== undefined
  }

  /** It took the last logits, and the next ones follow them. */
  get goesOn(): boolean {
    return !this.isLate && this.shortenedTo === undefined
  }

  retry(): boolean {
    const logits = this.held!
    this.held = undefined
    return this.take(logits)
  }

  /**
   * Chooses the next token from the logits, which it overwrites, or keeps them while the mask is
   * late, or takes tokens back. Returns true when the answer is complete.
   */
  take(logits: Float32Array): boolean {
    if (this.ended) return true // cancelled during the forward pass
    if (this.constrained?.becomesReady() === false) {
      this.held = logits.slice()
      return false
    }
    assertLogits(logits)
    if (this.takesBack() && !this.writesDecided) return false
    const { topLogprobs } = this.request
    const logprobs = topLogprobs === undefined ? undefined : logprobsOf(logits, topLogprobs)
    const token = this.constrained
      ? this.constrained.next(logits, this.left)
      : this.sampler.next(logits)
    if (token === undefined) return this.finish(this.constrained?.isClosing ? "length" : "stop")
    let isAtEnd = this.push(token, logprobs?.(token))
    while (!isAtEnd && this.writesDecided)
      isAtEnd = this.push(this.constrained!.next(logits, this.left)!)
    return isAtEnd
  }

  /** Decided tokens need no forward pass, unless the request wants their log-probabilities. */
  private get writesDecided(): boolean {
    return this.request.topLogprobs === undefined && this.constrained?.isClosing === true
  }

  private takesBack(): boolean {
    const count = this.constrained?.leave() ?? 0
    if (count === 0) return false
    this.ids.splice(-count)
    this.text.takeBack(count)
    this.shortenedTo = this.ids.length - 1
    return true
  }

  /** Called after a step, so that the cache holds tokens of the text only. */
  shorten(): void {
    if (this.shortenedTo !== undefined) this.cache.rewind(this.shortenedTo)
    this.shortenedTo = undefined
  }

  private push(token: number, chosen?: ChosenLogprobs): boolean {
    this.ids.push(token)
    this.text.add(token, chosen)
    if (this.text.send(this.constrained?.held ?? 0)) return this.finish("stop", true)
    const reason = this.model.endTokens.has(token)
      ? "stop"
      : this.constrained
        ? this.constrained.end(this.left)
        : this.left
          ? undefined
          : "length"
    return reason !== undefined && this.finish(reason)
  }

  private finish(reason: "stop" | "length", isCut = false): true {
    const { grammar } = this.request
    const isWhole = grammar?.closeOnLength
      ? reason === "stop" || this.constrained?.isWhole
      : undefined
    this.text.finish(reason, isCut, isWhole)
    return true
  }

  /** Reports the durations of the stages and keeps prompt and answer in the prefix cache. */
  release(): void {
    if (this.ended) return
    this.ended = true
    this.constrained?.release()
    this.times.report("prefill")
    this.times.report("decode")
    this.prefix.keepAll()
    this.cache.release()
  }
}
