import { type Usage, usageOf } from "../../../core/usage.ts"

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
  return {
    inputTokens,
    outputTokens,
    reasoningTokens: Math.min(outputTokens, countOf(reasoning_tokens) ?? 0),
    cacheReadTokens: countOf(usage.cache_read_input_tokens) ?? 0,
    cacheWriteTokens: countOf(usage.cache_creation_input_tokens) ?? 0,
  }
}

/** Tokens of a text as the named tokenizer counts them; less exact at cuts of long texts. */
export interface OwnCount {
  readonly inputTokens: number
  readonly outputTokens: number
}

/** How far a report may be from the own count: templates and marks are tokens, too. */
const tolerance = ({ inputTokens, outputTokens }: OwnCount) => ({
  input: 64 + inputTokens * 0.25,
  output: 16 + outputTokens * 0.1,
})

/**
 * The usage of one answer. While it comes, at least so many tokens are metered as pieces of it
 * have come, so that a call that the client leaves is paid; at its end the upstream's report
 * counts. Reports never fall and never exceed the bound.
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

  constructor(promptBytes: number, bound: Usage, caches: boolean) {
    this.promptBytes = promptBytes
    this.bound = bound
    this.caches = caches
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
    const { reported } = this
    return this.advance({
      inputTokens: reported?.inputTokens ?? Math.ceil(this.promptBytes / (2 * bytesOfToken)),
      outputTokens: Math.max(this.pieces - 1, reported?.outputTokens ?? 0),
      reasoningTokens: Math.max(0, this.reasoningPieces - 1),
      cacheReadTokens: 0,
      cacheWriteTokens: 0,
    })
  }

  /** What was used in all, where the answer has ended or was left. */
  whole(own?: OwnCount): Usage {
    this.isWhole = true
    const { reported, pieces } = this
    const estimate = {
      inputTokens: own?.inputTokens ?? Math.ceil(this.promptBytes / bytesOfToken),
      outputTokens: own?.outputTokens ?? Math.max(pieces, Math.ceil(this.bytes / bytesOfToken)),
      reasoningTokens: this.reasoningPieces,
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
    if (inputTokens > this.bound.inputTokens || outputTokens > this.bound.outputTokens)
      this.correction = `${inputTokens} and ${outputTokens} tokens are more than there can be`
    else if (inputTokens === 0 || outputTokens < this.pieces - 1)
      this.correction = `${inputTokens} and ${outputTokens} tokens are fewer than there were`
    const wrong = own && {
      input: Math.abs(inputTokens - own.inputTokens) > tolerance(own).input,
      output: Math.abs(outputTokens - own.outputTokens) > tolerance(own).output,
    }
    if (own && (wrong?.input || wrong?.output))
      this.correction = `${inputTokens} and ${outputTokens} tokens, counted here ${own.inputTokens} and ${own.outputTokens}`
    return {
      ...reported,
      inputTokens: wrong?.input || inputTokens === 0 ? estimate.inputTokens : inputTokens,
      outputTokens: wrong?.output ? estimate.outputTokens : Math.max(outputTokens, this.pieces - 1),
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
      outputTokens,
      reasoningTokens: within("reasoningTokens", outputTokens),
      cacheReadTokens,
      cacheWriteTokens: this.caches ? within("cacheWriteTokens", inputTokens - cacheReadTokens) : 0,
    })
    return this.last
  }
}
