/** A seeded source of choices: the same seed gives the same choices. */
export interface Random {
  /** From 0 up to, but not including, 1. */
  next(): number
  /** From `min` to `max`, both inclusive. */
  int(min: number, max: number): number
  chance(probability: number): boolean
  pick<A>(list: readonly A[]): A
}

/** The splitmix32 generator: short, and its streams of neighbouring seeds are unlike. */
export const makeRandom = (seed: number): Random => {
  let state = seed | 0
  const next = () => {
    state = (state + 0x9e3779b9) | 0
    let mixed = state ^ (state >>> 16)
    mixed = Math.imul(mixed, 0x21f0aaad)
    mixed ^= mixed >>> 15
    mixed = Math.imul(mixed, 0x735a2d97)
    return ((mixed ^ (mixed >>> 15)) >>> 0) / 2 ** 32
  }
  const int = (min: number, max: number) => min + Math.floor(next() * (max - min + 1))
  return {
    next,
    int,
    chance: (probability) => next() < probability,
    pick: <A>(list: readonly A[]) => list[int(0, list.length - 1)] as A,
  }
}
