import type { Constraints, Grammar } from "../grammar/constraint.ts"
import type { PacedConstraint } from "./constrained-decoding.ts"

/** Holds a thread. */
export interface OpenConstraints extends Constraints {
  open(grammar: Grammar): PacedConstraint
  close(): Promise<void> | void
}

/** Opens them with the first grammar: a model that never sees one pays nothing. */
export class LazyConstraints implements OpenConstraints {
  private readonly make: () => OpenConstraints
  private made: OpenConstraints | undefined

  constructor(make: () => OpenConstraints) {
    this.make = make
  }

  open(grammar: Grammar): PacedConstraint {
    this.made ??= this.make()
    return this.made.open(grammar)
  }

  async close(): Promise<void> {
    await this.made?.close()
  }
}
