/** Gives back in order what comes in any order. */
export const makeInOrder = <A>() => {
  const waiting = new Map<number, A>()
  let next = 0
  return {
    /** What may go out now that the item with this number, from 0 on, is there. */
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
