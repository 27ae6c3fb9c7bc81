import type { RawLine } from "../input/json-lines.ts"

const most = 50

export type LinePosition = Pick<RawLine, "line" | "offset" | "end">

/**
 * A pseudo-random rank, the same every time. An even stride would see only one kind of line where
 * kinds alternate.
 */
const rankOf = (line: number): number => {
  let rank = line
  for (let round = 0; round < 2; round++) rank = Math.imul(rank ^ (rank >>> 16), 0x45d9f3b)
  return (rank ^ (rank >>> 16)) >>> 0
}

/**
 * Positions of a random sample of up to 50 lines from a stream of unknown length: the lines with
 * the lowest ranks.
 */
export class Sample {
  #drawn: { readonly position: LinePosition; readonly rank: number }[] = []
  #seen = 0

  get seen(): number {
    return this.#seen
  }

  /** In order of the file. */
  get positions(): readonly LinePosition[] {
    return this.#drawn.map(({ position }) => position).sort((a, b) => a.line - b.line)
  }

  add({ line, offset, end }: LinePosition): void {
    this.#seen += 1
    const rank = rankOf(line)
    if (this.#drawn.length === most && rank >= this.#drawn[most - 1]!.rank) return
    this.#drawn.push({ position: { line, offset, end }, rank })
    this.#drawn = this.#drawn.sort((a, b) => a.rank - b.rank).slice(0, most)
  }
}
