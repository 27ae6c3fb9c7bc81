import fc from "fast-check"
import { describe, expect, test } from "vitest"
import { runs } from "../../../testing/property.ts"
import { kvTokenBytes } from "../sessions/kv-bank.ts"
import { blockTokens, type KvShape } from "../sessions/kv-store.ts"
import { cacheOf, contentsOf } from "../testing/kv-in-memory.ts"
import type { KvCache } from "./kv-cache.ts"
import { PrefixCache } from "./prefix-cache.ts"

const shape: KvShape = { layers: 1, kvHeads: 2, headSize: 2 }
const tokenBytes = kvTokenBytes(shape)

/** Fake keys and values: numbers that depend on the token and all before it. */
const filled = (ids: readonly number[]): KvCache => {
  const cache = cacheOf(shape)
  cache.reserve(ids.length)
  let sum = 0
  const fresh = new Float32Array(ids.length * 2 * 4)
  for (const [at, id] of ids.entries()) {
    sum = (sum * 31 + id + 1) % 65_521
    for (let kind = 0; kind < 2; kind++)
      fresh.fill(sum * 2 + kind, (kind * ids.length + at) * 4, (kind * ids.length + at + 1) * 4)
  }
  cache.append(fresh, ids.length)
  return cache
}
const dump = (cache: KvCache, tokens: number): readonly number[] => {
  return [...contentsOf(cache, tokens)]
}
const keep = (
  prefixes: PrefixCache,
  owner: string,
  ids: readonly number[],
  more: { readonly breakpoints?: readonly number[] } = {},
) =>
  prefixes.keep(owner, filled(ids), {
    ids,
    tokens: ids.length,
    breakpoints: [],
    ...more,
  })
const found = (
  prefixes: PrefixCache,
  owner: string,
  ids: readonly number[],
  breakpoints: readonly number[] = [],
) => prefixes.find(owner, ids, { most: ids.length - 1, breakpoints })

const range = (count: number, from = 0) => Array.from({ length: count }, (_, i) => from + i)

test("gives back exactly what a sequence with the same beginning has, to the token, and leaves one to read", () => {
  const prefixes = new PrefixCache(1e6, tokenBytes)
  keep(prefixes, "a", range(100))
  const other = [...range(70), ...range(30, 500)]
  const got = found(prefixes, "a", other)
  expect(got.tokens).toBe(70)
  const cache = cacheOf(shape)
  got.restoreInto(cache)
  expect(dump(cache, 70)).toEqual(dump(filled(other), 70))
  expect([96, 98, 100, 10, 1].map((length) => found(prefixes, "a", range(length)).tokens)).toEqual([
    95, 97, 99, 9, 0,
  ])
  keep(prefixes, "a", [...range(75), ...range(30, 700)])
  keep(prefixes, "a", [...range(72), ...range(30, 800)])
  // the block with the longest match
  expect(found(prefixes, "a", [...range(75), 700, 701, 5]).tokens).toBe(77)
})

test("owners never meet", () => {
  const prefixes = new PrefixCache(1e6, tokenBytes)
  keep(prefixes, '["a","live","m"]', range(100), { breakpoints: [100] })
  for (const owner of ['["b","live","m"]', '["a","test","m"]', '["a","live","n"]'])
    expect(found(prefixes, owner, range(101), [100])).toMatchObject({ tokens: 0, markedTokens: 0 })
})

describe("marked prefixes", () => {
  test("are counted to the token, from the second time on", () => {
    const prefixes = new PrefixCache(1e6, tokenBytes)
    const ids = range(140)
    expect(found(prefixes, "a", ids, [121]).markedTokens).toBe(0)
    expect(keep(prefixes, "a", ids, { breakpoints: [121] })).toBe(121)
    expect(found(prefixes, "a", ids, [121]).markedTokens).toBe(121)
    const next = [...range(121), ...range(40, 900)]
    expect(found(prefixes, "a", next, [121]).markedTokens).toBe(121)
    expect(found(prefixes, "a", next, [121]).tokens).toBe(121)
  })

  test("grow: the earlier part is read, the rest written", () => {
    const prefixes = new PrefixCache(1e6, tokenBytes)
    const ids = range(300)
    keep(prefixes, "a", ids.slice(0, 130), { breakpoints: [121] })
    expect(found(prefixes, "a", ids, [250]).markedTokens).toBe(121)
    expect(keep(prefixes, "a", ids, { breakpoints: [250] })).toBe(250)
    expect(found(prefixes, "a", ids, [121, 250]).markedTokens).toBe(250)
    expect(found(prefixes, "a", ids, [121]).markedTokens).toBe(112 + 9)
  })

  test("what was kept without a marker is reused, and not counted", () => {
    const prefixes = new PrefixCache(1e6, tokenBytes)
    keep(prefixes, "a", range(200))
    expect(found(prefixes, "a", range(200), [150])).toMatchObject({ tokens: 199, markedTokens: 0 })
    expect(found(prefixes, "a", range(200))).toMatchObject({ tokens: 199, markedTokens: 0 })
  })

  test("end where their marker was, even where an unmarked text went on", () => {
    const prefixes = new PrefixCache(1e6, tokenBytes)
    keep(prefixes, "a", range(112), { breakpoints: [112] })
    keep(prefixes, "a", range(121))
    expect(found(prefixes, "a", range(140), [121])).toMatchObject({
      tokens: 121,
      markedTokens: 112,
    })
  })

  test("are never counted beyond the last marker of the request itself", () => {
    const prefixes = new PrefixCache(1e6, tokenBytes)
    keep(prefixes, "a", range(300), { breakpoints: [280] })
    expect(found(prefixes, "a", range(300), [125]).markedTokens).toBe(112)
    expect(found(prefixes, "a", range(300)).markedTokens).toBe(0)
  })
})

test("where results depend on chunks, whole chunks are given back", () => {
  const prefixes = new PrefixCache(1e6, tokenBytes)
  keep(prefixes, "a", range(192))
  const inChunks = (ids: readonly number[]) => {
    const got = prefixes.find("a", ids, { most: ids.length - 1, multipleOf: 64, breakpoints: [] })
    const cache = cacheOf(shape)
    got.restoreInto(cache)
    expect(dump(cache, got.tokens)).toEqual(dump(filled(ids), got.tokens))
    return [got.tokens, cache.length]
  }
  expect(inChunks(range(200))).toEqual([192, 192])
  expect(inChunks(range(192))).toEqual([128, 128])
  expect(inChunks([...range(100), 7])).toEqual([64, 64])
  expect(inChunks(range(40))).toEqual([0, 0])
})

test("ends of texts are kept to the token, and go when a longer text holds them", () => {
  const prefixes = new PrefixCache(1e6, tokenBytes)
  keep(prefixes, "a", range(21))
  expect(prefixes.bytes).toBe(21 * tokenBytes)
  expect(found(prefixes, "a", range(40)).tokens).toBe(21)
  keep(prefixes, "a", range(19))
  expect(prefixes.bytes).toBe(21 * tokenBytes)
  keep(prefixes, "a", [...range(18), 900, 901])
  expect(prefixes.bytes).toBe(25 * tokenBytes)
  keep(prefixes, "a", range(32))
  expect(prefixes.bytes).toBe((32 + 4) * tokenBytes)
  // a marked block stays, as it is counted
  keep(prefixes, "b", range(121), { breakpoints: [121] })
  keep(prefixes, "b", range(128))
  expect(found(prefixes, "b", range(140), [121])).toMatchObject({ tokens: 128, markedTokens: 121 })
})

test("the memory is bounded, and what was not used for longest goes first", () => {
  const blockBytes = blockTokens * tokenBytes
  const prefixes = new PrefixCache(8 * blockBytes, tokenBytes)
  for (const start of [0, 1000, 2000, 3000]) keep(prefixes, "a", range(32, start))
  expect(prefixes.bytes).toBe(8 * blockBytes)
  found(prefixes, "a", range(33, 0))
  keep(prefixes, "b", range(32, 4000))
  expect(prefixes.bytes).toBe(8 * blockBytes)
  expect(found(prefixes, "a", range(33, 0)).tokens).toBe(32)
  expect(found(prefixes, "a", range(33, 1000)).tokens).toBe(0)
  // of a text longer than the memory the beginning is kept
  keep(prefixes, "c", range(32 * 16, 9000))
  expect(prefixes.bytes).toBe(8 * blockBytes)
  expect(found(prefixes, "c", range(32 * 16, 9000)).tokens).toBe(8 * blockTokens)
  expect(
    new PrefixCache(0, tokenBytes).keep("a", filled(range(50)), {
      ids: range(50),
      tokens: 50,
      breakpoints: [],
    }),
  ).toBe(0)
})

test("V8 does not count whole blocks, and the memory of dropped ones is used again", () => {
  const wide: KvShape = { layers: 8, kvHeads: 4, headSize: 64 }
  const bytes = 64 * blockTokens * kvTokenBytes(wide)
  const prefixes = new PrefixCache(bytes, kvTokenBytes(wide))
  const cache = cacheOf(wide)
  cache.reserve(64 * blockTokens)
  cache.length = 64 * blockTokens
  const grown = (first: number) => {
    const before = process.memoryUsage()
    const ids = range(cache.length, first)
    prefixes.keep("a", cache, { ids, tokens: ids.length, breakpoints: [] })
    const after = process.memoryUsage()
    return {
      counted: after.external - before.external,
      taken: after.arrayBuffers - before.arrayBuffers,
    }
  }
  const first = grown(0)
  expect(first.counted).toBeLessThan(bytes / 8)
  // a collection in between may free what other tests left
  expect(first.taken).toBeGreaterThan((bytes * 3) / 4)
  expect(grown(5000).taken).toBeLessThan(bytes / 8)
  expect(prefixes.bytes).toBe(bytes)
})

test("a short block for a breakpoint takes the room of no block of its own sequence", () => {
  const prefixes = new PrefixCache(4 * blockTokens * tokenBytes, tokenBytes)
  const [long, other] = [range(80), range(32, 500)]
  for (let times = 0; times < 2; times++) keep(prefixes, "a", long, { breakpoints: [24] })
  keep(prefixes, "b", other)
  expect(prefixes.bytes).toBeLessThanOrEqual(4 * blockTokens * tokenBytes)
  const got = found(prefixes, "b", other)
  const cache = cacheOf(shape)
  got.restoreInto(cache)
  expect([got.tokens, dump(cache, got.tokens)]).toEqual([31, dump(filled(other), 31)])
})

/** Few texts, so that long ones are kept again and again. */
const text = fc
  .array(fc.constantFrom(0, 1), { minLength: 1, maxLength: 80 })
  .chain((ids) => fc.constantFrom(ids, ids.slice(0, 40), [...ids.slice(0, 33), ...ids]))
const stepsOf = (texts: readonly (readonly number[])[]) =>
  fc.array(
    fc.record({
      owner: fc.constantFrom("a", "b"),
      ids: fc.constantFrom(...texts),
      marked: fc.boolean(),
      write: fc.boolean(),
    }),
    { maxLength: 40 },
  )

test("whatever is kept and found: the bound holds, and what is restored is what the text itself has", () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 24 }),
      fc.array(text, { minLength: 1, maxLength: 6 }).chain(stepsOf),
      (blocks, steps) => {
        const prefixes = new PrefixCache(blocks * blockTokens * tokenBytes, tokenBytes)
        const seen = new Map<string, string[]>([
          ["a", []],
          ["b", []],
        ])
        for (const { owner, ids, marked, write } of steps) {
          const breakpoints = marked ? [Math.ceil(ids.length * 0.7)] : []
          if (write) {
            expect(keep(prefixes, owner, ids, { breakpoints })).toBeLessThanOrEqual(
              breakpoints[0] ?? 0,
            )
            seen.get(owner)!.push(ids.join())
          }
          const got = found(prefixes, owner, ids, breakpoints)
          expect(prefixes.bytes).toBeLessThanOrEqual(blocks * blockTokens * tokenBytes)
          expect(got.tokens).toBeLessThan(ids.length)
          expect(got.markedTokens).toBeLessThanOrEqual(breakpoints[0] ?? 0)
          if (got.tokens)
            expect(
              seen
                .get(owner)!
                .some((other) => `${other},`.startsWith(`${ids.slice(0, got.tokens).join()},`)),
            ).toBe(true)
          const cache = cacheOf(shape)
          got.restoreInto(cache)
          expect(dump(cache, got.tokens)).toEqual(dump(filled(ids), got.tokens))
        }
      },
    ),
    { numRuns: runs(300) },
  )
})
