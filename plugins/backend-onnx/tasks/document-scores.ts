import type { RerankEvent } from "../../../core/ports/model.ts"

/** A window of a document: a sequence that is scored, or several where the query is long, too. */
export interface ScoredWindow<Input> {
  readonly document: number
  readonly inputs: readonly Input[]
}

interface OpenWindow {
  readonly document: number
  readonly of: number
  left: number
  sum: number
}

/**
 * Collects the scores of a request's sequences, in any order. A window's score is the mean of its
 * sequences', a document's is that of its best window.
 */
export class DocumentScores {
  /** By sequence. */
  private readonly windows: readonly OpenWindow[]
  private readonly windowsLeft = new Map<number, number>()
  private readonly best = new Map<number, number>()

  constructor(windows: readonly ScoredWindow<unknown>[]) {
    this.windows = windows.flatMap(({ document, inputs }) => {
      this.windowsLeft.set(document, (this.windowsLeft.get(document) ?? 0) + 1)
      const window = { document, of: inputs.length, left: inputs.length, sum: 0 }
      return inputs.map(() => window)
    })
  }

  /** Takes a sequence's score; returns the document's when that is known. */
  take(index: number, score: number): RerankEvent | undefined {
    const window = this.windows[index]!
    const { document } = window
    window.sum += score
    window.left--
    if (window.left) return undefined
    const best = Math.max(this.best.get(document) ?? 0, window.sum / window.of)
    const left = this.windowsLeft.get(document)! - 1
    this.best.set(document, best)
    this.windowsLeft.set(document, left)
    return left ? undefined : { index: document, score: best }
  }
}
