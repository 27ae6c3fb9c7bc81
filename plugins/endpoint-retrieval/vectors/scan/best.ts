/** The `size` largest of many numbers, as a heap with the least of them on top. */
export class Largest {
  private readonly values: Float64Array
  private count = 0

  constructor(size: number) {
    this.values = new Float64Array(size)
  }

  /** The least of them, once there are enough: a smaller number is none of the largest. */
  get least(): number {
    return this.count === this.values.length ? this.values[0]! : Number.NEGATIVE_INFINITY
  }

  offer(value: number): void {
    if (this.count < this.values.length) this.rise(value)
    else if (value > this.values[0]!) this.sink(value)
  }

  private rise(value: number): void {
    const { values } = this
    let at = this.count++
    while (at > 0) {
      const parent = (at - 1) >> 1
      if (values[parent]! <= value) break
      values[at] = values[parent]!
      at = parent
    }
    values[at] = value
  }

  private sink(value: number): void {
    const { values, count } = this
    let at = 0
    for (;;) {
      let child = 2 * at + 1
      if (child >= count) break
      if (child + 1 < count && values[child + 1]! < values[child]!) child++
      if (values[child]! >= value) break
      values[at] = values[child]!
      at = child
    }
    values[at] = value
  }
}

export interface ScoredChunk {
  readonly document: number
  readonly chunk: number
  /** Cosine. */
  readonly score: number
}

/** Best first; equal ones by document and chunk, so that the order never depends on chance. */
export const byRank = (a: ScoredChunk, b: ScoredChunk): number =>
  b.score - a.score || a.document - b.document || a.chunk - b.chunk

/** The best of many chunks, in order: most of them are compared with the last only. */
export class BestChunks {
  private readonly size: number
  private readonly sorted: ScoredChunk[] = []

  constructor(size: number) {
    this.size = size
  }

  get hits(): readonly ScoredChunk[] {
    return this.sorted
  }

  offer(chunk: ScoredChunk): void {
    const { sorted, size } = this
    const last = sorted.at(-1)
    if (sorted.length === size && last && byRank(chunk, last) >= 0) return
    let at = sorted.length
    while (at > 0 && byRank(chunk, sorted[at - 1]!) < 0) at--
    sorted.splice(at, 0, chunk)
    if (sorted.length > size) sorted.pop()
  }
}
