import type { RawLine } from "../input/json-lines.ts"

const most = 50

export type Place = Pick<RawLine, "line" | "offset" | "end">

/** A lot that is the same every time. An even stride instead would see one kind of line only where lines take turns. */
const lotOf = (line: number): number => {
  let lot = line
  for (let round = 0; round < 2; round++) lot = Math.imul(lot ^ (lot >>> 16), 0x45d9f3b)
  return (lot ^ (lot >>> 16)) >>> 0
}

/** Places of up to 50 lines of a file whose length shows only at its end: those with the lowest lots. Of the other lines nothing is kept. */
export class Sample {
  #drawn: { readonly place: Place; readonly lot: number }[] = []
  #seen = 0

  get seen(): number {
    return this.#seen
  }

  /** In the order of the file. */
  get places(): readonly Place[] {
    return this.#drawn.map(({ place }) => place).sort((a, b) => a.line - b.line)
  }

  add({ line, offset, end }: Place): void {
    this.#seen += 1
    const lot = lotOf(line)
    if (this.#drawn.length === most && lot >= this.#drawn[most - 1]!.lot) return
    this.#drawn.push({ place: { line, offset, end }, lot })
    this.#drawn = this.#drawn.sort((a, b) => a.lot - b.lot).slice(0, most)
  }
}
