import type { DecoderEvent, GenerateRequest } from "./decoder-jobs.ts"
import { GenerateJob } from "./generate-job.ts"
import type { Model, ReadPrompt } from "./model.ts"

/** Keys and values, in tokens, of a request with several answers, and how many it writes at once. */
export const capacityOf = (
  { promptIds, maxTokens, furtherSeeds = [] }: GenerateRequest,
  capacity: number,
): { readonly tokens: number; readonly atOnce: number } => {
  const row = promptIds.length + maxTokens
  if (!furtherSeeds.length) return { tokens: row, atOnce: 1 }
  // the prompt is kept beside the answers until the last one has begun
  const fitting = Math.floor((capacity - promptIds.length) / row)
  const atOnce = Math.max(1, Math.min(1 + furtherSeeds.length, fitting))
  return { tokens: Math.min(capacity, promptIds.length + atOnce * row), atOnce }
}

/**
 * Several answers to one prompt, which is read once. The first answer reads it and needs one slot;
 * the others begin with a copy of its keys and values, each as soon as a slot is free, or when an
 * earlier answer has ended. Each has a seed, a grammar state and a prefix cache entry of its own.
 */
export class AnswerSet {
  /** The answers that are being written. */
  rows: GenerateJob[]
  private readonly model: Model
  private readonly request: GenerateRequest
  private readonly emit: (event: DecoderEvent) => void
  private readonly atOnce: number
  private prompt: ReadPrompt | undefined
  /** Seeds of the answers that have not begun. */
  private left: readonly number[]
  private answer = 0
  private decodeMs = 0
  private ended = false

  constructor(
    model: Model,
    request: GenerateRequest,
    emit: (event: DecoderEvent) => void,
    atOnce: number,
  ) {
    this.model = model
    this.request = request
    this.emit = emit
    this.atOnce = atOnce
    this.left = request.furtherSeeds ?? []
    const keep = (prompt: ReadPrompt) => {
      this.prompt = prompt
    }
    this.rows = [new GenerateJob(model, request, emit, { keep })]
  }

  get slots(): number {
    return Math.max(1, this.rows.length)
  }

  /** Begins the next answer, if the prompt has been read and the memory is enough. */
  grow(): boolean {
    const { prompt } = this
    const [seed, ...left] = this.left
    if (!prompt || seed === undefined || this.rows.length >= this.atOnce) return false
    this.left = left
    const answer = ++this.answer
    const emit = (event: DecoderEvent) => {
      if (event.type !== "time") this.emit({ ...event, answer })
    }
    this.rows.push(new GenerateJob(this.model, { ...this.request, seed }, emit, { prompt }))
    if (!left.length) this.forgetPrompt()
    return true
  }

  private forgetPrompt(): void {
    this.prompt?.cache.release()
    this.prompt = undefined
  }

  /** Returns true when all answers have ended. */
  rowEnded(row: GenerateJob): boolean {
    row.release()
    this.rows = this.rows.filter((other) => other !== row)
    return !this.rows.length && !this.grow()
  }

  spent(_stage: "decode", durationMs: number): void {
    this.decodeMs += durationMs
  }

  release(): void {
    if (this.ended) return
    this.ended = true
    this.forgetPrompt()
    for (const row of this.rows) row.release()
    this.emit({ type: "time", stage: "decode", durationMs: this.decodeMs })
  }
}
