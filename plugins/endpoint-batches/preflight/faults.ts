import type { BatchError } from "../tables.ts"

const maxListed = 100

/** What is wrong with an input; of many faults the first ones and their number. */
export class Faults {
  readonly #listed: BatchError[] = []
  #count = 0

  get count(): number {
    return this.#count
  }

  add(fault: BatchError): void {
    this.#count += 1
    if (this.#listed.length < maxListed) this.#listed.push(fault)
  }

  /** By line; the last one says how many are not listed. */
  list(): readonly BatchError[] {
    const listed = [...this.#listed].sort((a, b) => (a.line ?? 0) - (b.line ?? 0))
    const rest = this.#count - listed.length
    if (rest === 0) return listed
    return [
      ...listed,
      {
        code: "more_errors",
        message: `${rest.toLocaleString("en")} more errors are not listed.`,
        line: null,
        param: null,
      },
    ]
  }
}
