import { randomInt } from "node:crypto"

/** Uniform in [0, 1). */
export type Random = () => number

const rotateLeft = (x: number, by: number): number => (x << by) | (x >>> (32 - by))

// splitmix32: spreads a seed, so that similar seeds give unrelated streams
const spread = (seed: number): (() => number) => {
  let state = seed | 0
  return () => {
    state = (state + 0x9e3779b9) | 0
    let mixed = Math.imul(state ^ (state >>> 16), 0x21f0aaad)
    mixed = Math.imul(mixed ^ (mixed >>> 15), 0x735a2d97)
    return mixed ^ (mixed >>> 15)
  }
}

/**
 * xoshiro128** (Blackman and Vigna, https://prng.di.unimi.it/xoshiro128starstar.c): small, and the
 * same on every machine. Each request has its own.
 */
export const seededRandom = (seed: number): Random => {
  const low = spread(seed % 2 ** 32)
  const high = spread(Math.floor(seed / 2 ** 32) ^ 0x5bd1e995)
  let [a, b, c, d] = [low() ^ high(), low() ^ high(), low() ^ high(), low() ^ high() || 1]
  const next = (): number => {
    const result = Math.imul(rotateLeft(Math.imul(b, 5), 7), 9)
    const shifted = b << 9
    c ^= a
    d ^= b
    b ^= c
    a ^= d
    c ^= shifted
    d = rotateLeft(d, 11)
    return result >>> 0
  }
  return () => ((next() >>> 5) * 67_108_864 + (next() >>> 6)) / 9_007_199_254_740_992
}

export const freshSeed = (): number => randomInt(2 ** 47)

/** Returns `count` further seeds that follow from one. */
export const furtherSeeds = (seed: number, count: number): readonly number[] => {
  const draw = seededRandom(seed)
  return Array.from({ length: count }, () => Math.floor(draw() * 2 ** 47))
}
