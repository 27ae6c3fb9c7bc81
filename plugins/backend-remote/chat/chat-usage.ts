import { type Usage, usageOf } from "../../../core/usage.ts"
import { type CountRange, judged } from "../own-count.ts"

/** Bytes of text that a token stands for, about, where nobody counts it exactly. */
const bytesOfToken = 4

type Fields = Readonly<Record<string, unknown>>
const fieldsOf = (value: unknown): Fields =>
  typeof value === "object" && value !== null ? (value as Fields) : {}

const countOf = (value: unknown): number | undefined =>
  Number.isSafeInteger(value) && (value as number) >= 0 ? (value as number) : undefined

/** Usage as an upstream reports it; undefined: none, or not in counts. */
export interface ReportedUsage {
  readonly inputTokens: number
  readonly imageTokens: number
  readonly outputTokens: number
  readonly reasoningTokens: number
  readonly cacheReadTokens: number
  readonly cacheWriteTokens: number
}

export const readUsage = (value: unknown): ReportedUsage | undefined => {
  const usage = fieldsOf(value)
  const inputTokens = countOf(usage.prompt_tokens)
  const outputTokens = countOf(usage.completion_tokens ?? 0)
  if (inputTokens === undefined || outputTokens === undefined) return undefined
  const { reasoning_tokens } = fieldsOf(usage.completion_tokens_details)
  const { image_tokens } = fieldsOf(usage.prompt_tokens_details)
  return {
    inputTokens,
    imageTokens: countOf(image_tokens) ?? 0,
    outputTokens,
    reasoningTokens: Math.min(outputTokens, countOf(reasoning_tokens) ?? 0),
    cacheReadTokens: countOf(usage.cache_read_input_tokens) ?? 0,
    cacheWriteTokens: countOf(usage.cache_creation_input_tokens) ?? 0,
  }
}

/** Tokens as the named tokenizer counts them. Of a prompt with media only the output is known. */
export interface OwnCount {
  readonly input: CountRange | undefined
  readonly output: CountRange
}

/**
 * The usage of one answer. While it comes, at least so many tokens are metered as pieces of it
 * have come, so that a call that the client leaves is paid; at its end the upstream's report
 * counts, unless an own count speaks against it. Reports never fall and never exceed the bound.
 */
export class ChatUsage {
  /** What was reported is not what was charged. */
  correction: string | undefined
  /** `whole` was called. */
  isWhole = false
  private last = usageOf({})
  private pieces = 0
  private bytes = 0
  private reasoningPieces = 0
  private reported: ReportedUsage | undefined
  private readonly promptBytes: number
  private readonly bound: Usage
  private readonly caches: boolean
  private readonly isCounted: boolean

  /** `isCounted`: there will be an own count, so nothing is believed before it. */
  constructor(promptBytes: number, bound: Usage, { caches = false, isCounted = false } = {}) {
    this.promptBytes = promptBytes
    this.bound = bound
    this.caches = caches
    this.isCounted = isCounted
  }

  /** A piece of the answer has come: one token or more. */
  wrote(text: string, isReasoning = false): void {
    if (text === "") return
    this.pieces++
    if (isReasoning) this.reasoningPieces++
    this.bytes += Buffer.byteLength(text)
  }

  /** How many tokens the answer has at least. */
  leastTokens(): number {
    return this.pieces
  }

  report(value: unknown): void {
    if (value === undefined || value === null) return
    const read = readUsage(value)
    if (read) this.reported = read
    else this.correction = "the usage is not in counts"
  }

  /** What was used so far: less than the whole in doubt, as it may only grow. */
  soFar(): Usage {
    const reported = this.isCounted ? undefined : this.reported
    return this.advance({
      inputTokens: reported?.inputTokens ?? Math.ceil(this.promptBytes / (2 * bytesOfToken)),
      outputTokens: Math.max(this.pieces - 1, reported?.outputTokens ?? 0),
      reasoningTokens: Math.max(0, this.reasoningPieces - 1),
      imageTokens: 0,
      cacheReadTokens: 0,
      cacheWriteTokens: 0,
    })
  }

  /** What was used in all, where the answer has ended or was left. */
  whole(own?: OwnCount): Usage {
    this.isWhole = true
    const { reported, pieces } = this
    const estimate = {
      inputTokens: own?.input?.likely ?? Math.ceil(this.promptBytes / bytesOfToken),
      outputTokens: own?.output.likely ?? Math.max(pieces, Math.ceil(this.bytes / bytesOfToken)),
      reasoningTokens: this.reasoningPieces,
      imageTokens: 0,
      cacheReadTokens: 0,
      cacheWriteTokens: 0,
    }
    if (!reported) this.correction ??= "there is no usage"
    return this.advance(reported ? this.checked(reported, own, estimate) : estimate)
  }

  private checked(
    reported: ReportedUsage,
    own: OwnCount | undefined,
    estimate: ReportedUsage,
  ): ReportedUsage {
    const { inputTokens, outputTokens } = reported
    const said = `${inputTokens} and ${outputTokens} tokens`
    if (inputTokens > this.bound.inputTokens || outputTokens > this.bound.outputTokens)
      this.correction = `${said} are more than there can be`
    else if (inputTokens === 0 || outputTokens < this.pieces - 1)
      this.correction = `${said} are fewer than there were`
    if (own) return this.counted(reported, own, said)
    return {
      ...reported,
      inputTokens: inputTokens === 0 ? estimate.inputTokens : inputTokens,
      outputTokens: Math.max(outputTokens, this.pieces - 1),
    }
  }

  private counted(
    reported: ReportedUsage,
    { input, output }: OwnCount,
    said: string,
  ): ReportedUsage {
    const asked = input && judged(reported.inputTokens, input)
    const wrote = judged(reported.outputTokens, output)
    if (asked?.isWrong || wrote.isWrong)
      this.correction = `${said}, counted here ${input?.likely ?? "unknown"} and ${output.likely}`
    return {
      ...reported,
      inputTokens: asked?.tokens ?? reported.inputTokens,
      outputTokens: wrote.tokens,
    }
  }

  private advance(now: ReportedUsage): Usage {
    const { bound, last } = this
    const within = (key: keyof ReportedUsage, most: number) =>
      Math.max(last[key], Math.min(now[key], bound[key], most))
    const inputTokens = within("inputTokens", Number.MAX_SAFE_INTEGER)
    const outputTokens = within("outputTokens", Number.MAX_SAFE_INTEGER)
    const cacheReadTokens = this.caches ? within("cacheReadTokens", inputTokens) : 0
    this.last = usageOf({
      inputTokens,
      imageTokens: within("imageTokens", inputTokens),
      outputTokens,
      reasoningTokens: within("reasoningTokens", outputTokens),
      cacheReadTokens,
      cacheWriteTokens: this.caches ? within("cacheWriteTokens", inputTokens - cacheReadTokens) : 0,
    })
    return this.last
  }
}
