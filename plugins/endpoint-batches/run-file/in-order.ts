/** A reorder buffer: items come in any order, and go out in order of their numbers. */
export const makeInOrder = <A>() => {
  const waiting = new Map<number, A>()
  let next = 0
  return {
    /** Adds the item with this number, from 0 on. Returns the items that are next. */
    put: (number: number, item: A): readonly A[] => {
      waiting.set(number, item)
      const ready: A[] = []
      for (let first = waiting.get(next); first !== undefined; first = waiting.get(next)) {
        waiting.delete(next)
        ready.push(first)
        next += 1
      }
      return ready
    },
  }
}
