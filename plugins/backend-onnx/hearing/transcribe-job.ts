import { deflateSync } from "node:zlib"
import type { Tokenizer } from "tokenizers"
import type { TranscriptSpan } from "../../../core/ports/audio.ts"
import { seededRandom } from "../sampling/random.ts"
import type { StageTime } from "../worker/protocol.ts"
import type { Frames } from "./frames.ts"
import type { HearingConfig } from "./hearing-config.ts"
import type { HearingSession, Writing } from "./hearing-session.ts"
import { type Segment, segmentsOf } from "./segments.ts"
import { logSum, TokenRules } from "./token-rules.ts"

/** Sound to transcribe, posted to the engine. */
export interface TranscribeJobRequest {
  /** Mono, at the model's rate. */
  readonly samples: Float32Array
  /** A language that the model knows; absent: it finds out. */
  readonly language?: string
  readonly prompt?: string
  readonly temperature: number
  readonly seed: number
  readonly segments: boolean
}

export type TranscribeJobEvent =
  | StageTime
  | { readonly type: "text"; readonly text: string; readonly span?: TranscriptSpan }
  | { readonly type: "finish"; readonly language?: string }

/** An open model, as the main thread sees it. */
export interface HearingInfo {
  /** Samples a second that it reads. */
  readonly rate: number
  readonly contextTokens: number
  readonly languages: readonly string[]
  /** Digest of its files, its precision and the graphs; for receipts. */
  readonly digest: string
}

export interface HearingModel {
  readonly session: HearingSession
  readonly tokenizer: Tokenizer
}

/** Whisper's thresholds: a window is silent that the model takes for silence and writes badly. */
const silence = { probability: 0.6, meanLogprob: -1 }

interface Written {
  readonly tokens: readonly number[]
  readonly meanLogprob: number
  readonly noSpeech: number
}

const indexOfMost = (values: Float32Array): number => {
  let best = 0
  for (let i = 1; i < values.length; i++) if (values[i]! > values[best]!) best = i
  return best
}

const sampled = (logits: Float32Array, temperature: number, random: () => number): number => {
  const heated = logits.map((logit) => logit / temperature)
  const sum = logSum(heated)
  let left = random()
  for (let i = 0; i < heated.length; i++) {
    left -= Math.exp(heated[i]! - sum)
    if (left < 0) return i
  }
  return indexOfMost(logits)
}

/** Transcribes sound window by window; pauses between the runs of the model. */
export class Transcription {
  private readonly model: HearingModel
  private readonly config: HearingConfig
  private readonly request: TranscribeJobRequest
  private readonly emit: (event: TranscribeJobEvent) => void
  private readonly pause: () => Promise<void>
  private readonly random: () => number
  private readonly spentMs = { encode: 0, decode: 0 }

  constructor(
    model: HearingModel,
    request: TranscribeJobRequest,
    emit: (event: TranscribeJobEvent) => void,
    pause: () => Promise<void>,
  ) {
    this.model = model
    this.config = model.session.config
    this.request = request
    this.emit = emit
    this.pause = pause
    this.random = seededRandom(request.seed)
  }

  async run(): Promise<void> {
    const { session } = this.model
    const frames = await this.timed("encode", () =>
      session.framesOf(this.request.samples, this.pause),
    )
    const isLong = frames.count > session.windowFrames
    const { firstTimestamp = Number.POSITIVE_INFINITY } = this.config.tokens
    const withTimes = (isLong || this.request.segments) && firstTimestamp < this.config.vocabulary
    let language = this.request.language
    let prompt = await this.promptTokens()
    for (let first = 0; first < frames.count; ) {
      await this.pause()
      const heard = await this.timed("encode", () => session.hear(frames, first))
      language ??= await this.languageOf(heard)
      const written = await this.write(heard, [...prompt, ...this.beginning(language, withTimes)], {
        withTimes,
      })
      prompt = []
      first += await this.tell(written, frames, first, withTimes)
    }
    for (const stage of ["encode", "decode"] as const)
      this.emit({ type: "time", stage, durationMs: this.spentMs[stage] })
    this.emit({ type: "finish", ...(language !== undefined && { language }) })
  }

  private async timed<A>(stage: "encode" | "decode", work: () => Promise<A>): Promise<A> {
    const startedMs = performance.now()
    try {
      return await work()
    } finally {
      this.spentMs[stage] += performance.now() - startedMs
    }
  }

  /** The tokens of the request's prompt, of which the latest half of a window's fit. */
  private async promptTokens(): Promise<readonly number[]> {
    const { previous, special, end, firstTimestamp } = this.config.tokens
    const text = this.request.prompt?.trim()
    if (!text || previous === undefined) return []
    const encoded = await this.model.tokenizer.encode(` ${text}`, null, {
      addSpecialTokens: false,
    })
    // a prompt may spell them, and another start would move where silence is looked for
    const control = new Set([...special, end])
    const isText = (id: number) =>
      !control.has(id) && id < (firstTimestamp ?? Number.POSITIVE_INFINITY)
    const most = Math.floor(this.config.contextTokens / 2) - 1
    return [previous, ...encoded.getIds().filter(isText).slice(-most)]
  }

  private beginning(language: string | undefined, withTimes: boolean): readonly number[] {
    const { start, languages, transcribe, noTimestamps } = this.config.tokens
    const known = language === undefined ? undefined : languages[language]
    return [
      start,
      ...(known === undefined ? [] : [known, ...(transcribe === undefined ? [] : [transcribe])]),
      ...(withTimes || noTimestamps === undefined ? [] : [noTimestamps]),
    ]
  }

  /** The likeliest language of a window; undefined: the model knows one only. */
  private async languageOf(heard: Writing): Promise<string | undefined> {
    const { start, languages } = this.config.tokens
    const names = Object.keys(languages)
    if (names.length === 0) return undefined
    const { session } = this.model
    const [logits] = await this.timed("decode", () => session.write(session.again(heard), [start]))
    return names.reduce((best, name) =>
      logits![languages[name]!]! > logits![languages[best]!]! ? name : best,
    )
  }

  private async write(
    heard: Writing,
    beginning: readonly number[],
    { withTimes }: { readonly withTimes: boolean },
  ): Promise<Written> {
    const { session } = this.model
    const { tokens, contextTokens } = this.config
    const rules = new TokenRules(tokens, withTimes)
    const wanted = [beginning.indexOf(tokens.start), beginning.length - 1]
    let [first, logits] = await this.timed("decode", () => session.write(heard, beginning, wanted))
    const noSpeech =
      tokens.noSpeech === undefined ? 0 : Math.exp(first![tokens.noSpeech]! - logSum(first!))
    const written: number[] = []
    let logprobs = 0
    for (;;) {
      rules.apply(logits!, written)
      const { temperature } = this.request
      const token =
        temperature === 0 ? indexOfMost(logits!) : sampled(logits!, temperature, this.random)
      logprobs += logits![token]! - logSum(logits!)
      if (token === tokens.end || heard.tokens >= contextTokens) break
      written.push(token)
      await this.pause()
      ;[logits] = await this.timed("decode", () => session.write(heard, [token]))
    }
    return { tokens: written, meanLogprob: logprobs / (written.length + 1), noSpeech }
  }

  /** Emits what a window says; returns how many frames were read. */
  private async tell(
    { tokens: written, meanLogprob, noSpeech }: Written,
    frames: Frames,
    first: number,
    withTimes: boolean,
  ): Promise<number> {
    const { tokens, spectrogram } = this.config
    const { rate, hop } = spectrogram
    const size = Math.min(this.model.session.windowFrames, frames.count - first)
    const isSilent = noSpeech > silence.probability && meanLogprob < silence.meanLogprob
    if (isSilent) return size
    const { segments, read } = segmentsOf(written, {
      first,
      frames: size,
      secondsOfFrame: hop / rate,
      ...(withTimes && { firstTimestamp: tokens.firstTimestamp! }),
    })
    for (const segment of segments) {
      const text = await this.textOf(segment)
      if (text.trim() === "") continue
      const span = this.spanOf(segment, text, { meanLogprob, noSpeech })
      this.emit({ type: "text", text, ...(this.request.segments && { span }) })
    }
    return read
  }

  private async textOf({ tokens }: Segment): Promise<string> {
    const { firstTimestamp = Number.POSITIVE_INFINITY } = this.config.tokens
    const words = tokens.filter((token) => token < firstTimestamp)
    return this.model.tokenizer.decode(words, true)
  }

  private spanOf(
    { start, end }: Segment,
    text: string,
    { meanLogprob, noSpeech }: Pick<Written, "meanLogprob" | "noSpeech">,
  ): TranscriptSpan {
    const bytes = Buffer.from(text)
    const longest = this.request.samples.length / this.config.spectrogram.rate
    const seconds = (at: number) => Math.round(Math.min(at, longest) * 1000) / 1000
    return {
      start: seconds(start),
      end: seconds(end),
      temperature: this.request.temperature,
      avgLogprob: meanLogprob,
      compressionRatio: bytes.length / deflateSync(bytes).length,
      noSpeechProb: noSpeech,
    }
  }
}
