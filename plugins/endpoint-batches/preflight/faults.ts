import type { BatchError } from "../tables.ts"

const maxListed = 100

/** Collects errors of an input: the first 100, and the number of all. */
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

  /** Sorted by line; a last entry says how many are not listed. */
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
