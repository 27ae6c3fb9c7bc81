/** The place of one value in a list. */
export interface Link<A> {
  readonly value: A
  before: Link<A>
  after: Link<A>
}

const makeEnd = <A>(): Link<A> => {
  const end = { value: undefined as A } as Link<A>
  end.before = end
  end.after = end
  return end
}

/**
 * Values that come and go with requests, in the order in which they came. A Set or Map leaves its
 * old table behind whenever it grows or shrinks, with what was in it and a pointer to the next
 * table. As soon as V8 has moved one of these tables into its old heap, all later ones follow, so
 * that every request stays in memory until the next full collection. A link that is removed points
 * to nothing.
 */
export class LinkedList<A> {
  readonly #end = makeEnd<A>()
  #size = 0

  get size(): number {
    return this.#size
  }

  add(value: A): Link<A> {
    const link = { value, before: this.#end.before, after: this.#end }
    link.before.after = link
    this.#end.before = link
    this.#size++
    return link
  }

  /** Returns whether it was still there. */
  remove(link: Link<A>): boolean {
    if (link.after === link) return false
    link.before.after = link.after
    link.after.before = link.before
    link.before = link
    link.after = link
    this.#size--
    return true
  }

  values(): readonly A[] {
    const values: A[] = []
    for (let link = this.#end.after; link !== this.#end; link = link.after) values.push(link.value)
    return values
  }
}
