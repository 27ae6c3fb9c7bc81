import type { Constraint, Constraints, Grammar } from "../grammar/constraint.ts"

/** Holds a thread. */
export interface OpenConstraints extends Constraints {
  close(): Promise<void> | void
}

/** Opens them with the first grammar: a model that never sees one pays nothing. */
export class LazyConstraints implements OpenConstraints {
  private readonly make: () => OpenConstraints
  private made: OpenConstraints | undefined

  constructor(make: () => OpenConstraints) {
    this.make = make
  }

  open(grammar: Grammar): Constraint {
    this.made ??= this.make()
    return this.made.open(grammar)
  }

  async close(): Promise<void> {
    await this.made?.close()
  }
}
