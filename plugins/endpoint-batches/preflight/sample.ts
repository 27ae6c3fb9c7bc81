import type { RawLine } from "../input/json-lines.ts"

// even, so that the line that makes it too many is one that stays
const most = 50

export type Place = Pick<RawLine, "line" | "offset" | "end">

/** Places of up to 50 lines, evenly spread over a file whose length shows only at its end. Of those lines nothing is kept. */
export class Sample {
  #places: Place[] = []
  #stride = 1
  #seen = 0

  get seen(): number {
    return this.#seen
  }

  get places(): readonly Place[] {
    return this.#places
  }

  add({ line, offset, end }: Place): void {
    if (this.#seen++ % this.#stride !== 0) return
    if (this.#places.length === most) {
      this.#places = this.#places.filter((_, at) => at % 2 === 0)
      this.#stride *= 2
    }
    this.#places.push({ line, offset, end })
  }
}
