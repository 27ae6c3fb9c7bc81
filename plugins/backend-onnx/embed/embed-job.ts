import type { Tensor } from "onnxruntime-node"
import { longs, type Session } from "../engine/onnx-session.ts"
import type { StageTime } from "../engine/protocol.ts"
import type { EngineJob } from "../engine/turn-stepper.ts"

/** Texts as token ids, special tokens included. */
export interface EmbedJobRequest {
  readonly texts: readonly Int32Array[]
}

/** `inputTokens` of all texts so far. */
export type EmbedJobEvent = StageTime | { readonly type: "vector"; readonly index: number; readonly vector: Float32Array; readonly inputTokens: number }

export interface BertInfo {
  /** Tokens of a text at most, special ones included. */
  readonly maxTokens: number
  readonly name: string
  /** Of the weights. */
  readonly digest: string
}

// a step of more tokens would keep others waiting; more texts would mostly be padding
const stepTokens = 256
const stepTexts = 16

/** Texts of like length go together, so that little is padded. */
export const stepsOf = (lengths: readonly number[]): readonly (readonly number[])[] => {
  const byLength = lengths.map((_, index) => index).sort((a, b) => lengths[a]! - lengths[b]! || a - b)
  const steps: number[][] = []
  for (const index of byLength) {
    const current = steps.at(-1)
    if (current && current.length < stepTexts && (current.length + 1) * lengths[index]! <= stepTokens) current.push(index)
    else steps.push([index])
  }
  return steps
}

const feedsOf = (texts: readonly Int32Array[]): Record<string, Tensor> => {
  const width = Math.max(...texts.map((text) => text.length))
  const ids = new Array<number>(texts.length * width).fill(0)
  for (const [row, text] of texts.entries()) for (let i = 0; i < text.length; i++) ids[row * width + i] = text[i]!
  return { input_ids: longs(ids, [texts.length, width]), lengths: longs(texts.map((text) => text.length)) }
}

/** Embeds texts, a few a step. */
export class EmbedJob implements EngineJob {
  private readonly session: Session
  private readonly request: EmbedJobRequest
  private readonly emit: (event: EmbedJobEvent) => void
  private readonly steps: (readonly number[])[]
  private inputTokens = 0
  private spentMs = 0

  constructor(session: Session, request: EmbedJobRequest, emit: (event: EmbedJobEvent) => void) {
    this.session = session
    this.request = request
    this.emit = emit
    this.steps = [...stepsOf(request.texts.map((text) => text.length))]
  }

  async step(): Promise<boolean> {
    const startedMs = performance.now()
    const indices = this.steps.shift()!
    const { vectors } = await this.session.run(feedsOf(indices.map((index) => this.request.texts[index]!)))
    const all = vectors!.data as Float32Array
    const size = all.length / indices.length
    for (const [row, index] of indices.entries()) {
      this.inputTokens += this.request.texts[index]!.length
      this.emit({ type: "vector", index, vector: all.slice(row * size, (row + 1) * size), inputTokens: this.inputTokens })
    }
    this.spentMs += performance.now() - startedMs
    if (this.steps.length) return false
    this.emit({ type: "time", stage: "prefill", durationMs: this.spentMs })
    return true
  }
}
