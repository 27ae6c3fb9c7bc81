import fc from "fast-check"
import { expect, it } from "vitest"
import { runs } from "../../../../testing/property.ts"
import { floatOfHalf, roundedToHalves, toHalves, unitPrefix } from "../half-floats.ts"
import { byRank, type ScoredChunk } from "./best.ts"
import { packedRowBytes, type ScanQuery, searchPacked } from "./packed-rows.ts"
import { RowIndex } from "./row-index.ts"
import { layoutOf, Slabs, slabsOf } from "./slabs.ts"

interface Row {
  readonly document: number
  readonly chunk: number
  readonly halves: Uint16Array
}

const pack = (document: number, rows: readonly Row[], dimensions: number) => {
  const bytes = new Uint8Array(rows.length * packedRowBytes(dimensions))
  const view = new DataView(bytes.buffer)
  for (const [i, { chunk, halves }] of rows.entries()) {
    const at = i * packedRowBytes(dimensions)
    view.setInt32(at, chunk)
    for (const [k, half] of halves.entries()) view.setUint16(at + 4 + 2 * k, half, true)
  }
  return { document, expiresMs: document % 7 === 6 ? 1000 : 3000, rows: bytes }
}

const scored = (rows: readonly Row[], { vector, limit }: ScanQuery): readonly ScoredChunk[] =>
  rows
    .map(({ document, chunk, halves }) => {
      let score = 0
      for (let i = 0; i < vector.length; i++) score += vector[i]! * floatOfHalf[halves[i]!]!
      return { document, chunk, score }
    })
    .sort(byRank)
    .slice(0, limit)

const random = (seed: number) => {
  let state = seed
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 32 - 0.5
  }
}

/** Also vectors of few different numbers, so that scores are equal. */
const vectors = (dimensions: number, seed: number) => {
  const next = random(seed)
  const isCoarse = seed % 3 === 0
  return () => {
    const value = () => (isCoarse ? Math.sign(Math.round(next() * 3)) : next())
    return unitPrefix(Float32Array.from({ length: dimensions }, value), dimensions)
  }
}

const slabs = 40
const change = fc.oneof(
  fc.record({ add: fc.integer({ min: 0, max: 60 }) }),
  fc.record({ remove: fc.array(fc.nat(), { maxLength: 3 }) }),
)

it("finds exactly what comparing with every half vector finds, whatever was added and removed", () => {
  const memory = new Slabs(slabs)
  fc.assert(
    fc.property(
      fc.constantFrom(1, 3, 16, 17, 100, 384, 2048, 5000),
      fc.nat(),
      fc.array(change, { maxLength: 12 }),
      fc.integer({ min: 1, max: 30 }),
      (dimensions, seed, changes, limit) => {
        const layout = layoutOf(dimensions)!
        const index = new RowIndex(memory, layout)
        const next = vectors(dimensions, seed)
        let rows: readonly Row[] = []
        let documents = 0
        for (const one of changes) {
          if ("remove" in one) {
            const removed = one.remove.map((nth) => nth % (documents + 1))
            index.remove(removed)
            rows = rows.filter(({ document }) => !removed.includes(document))
            continue
          }
          const document = ++documents
          const added = Array.from(
            { length: one.add },
            (_, chunk): Row => ({ document, chunk, halves: toHalves(next()) }),
          )
          if (slabsOf(rows.length + added.length, layout) > slabs) continue
          index.add(pack(document, added, dimensions))
          rows = [...rows, ...added]
        }
        const vector = roundedToHalves(next())
        const ranges = [1, 2, 3, 3].map((document, i) => ({
          document,
          from: 10 * i,
          to: 10 * i + 7,
        }))
        const inRanges = rows.filter(({ document, chunk }) =>
          ranges.some((one) => one.document === document && one.from <= chunk && chunk <= one.to),
        )
        const early = { vector, limit, nowMs: 999 }
        const late = { vector, limit, nowMs: 1000 }
        expect(index.search(early)).toEqual(scored(rows, early))
        expect(index.search({ ...early, ranges })).toEqual(scored(inRanges, early))
        const unexpired = rows.filter(({ document }) => document % 7 !== 6)
        expect(index.search(late)).toEqual(scored(unexpired, late))
        index.clear()
        expect(index.search(early)).toEqual([])
      },
    ),
    { numRuns: runs(60) },
  )
  // all memory came back
  expect(Array.from({ length: slabs }, () => memory.take()).length).toBe(slabs)
})

it("uploads and removals all day take no more memory than the most documents at once", () => {
  const dimensions = 3
  const layout = layoutOf(dimensions)!
  const nth = fc.oneof(fc.constant(null), fc.nat())
  fc.assert(
    fc.property(fc.array(nth, { maxLength: 200 }), fc.nat(), (changes, seed) => {
      const index = new RowIndex(new Slabs(slabs), layout)
      const next = vectors(dimensions, seed)
      let rows: readonly Row[] = []
      let most = 0
      for (const [document, remove] of changes.entries())
        if (remove === null) {
          const row = { document, chunk: 0, halves: toHalves(next()) }
          index.add(pack(document, [row], dimensions))
          rows = [...rows, row]
          most = Math.max(most, rows.length)
        } else {
          const gone = rows[remove % Math.max(1, rows.length)]?.document ?? document
          index.remove([gone, gone])
          rows = rows.filter((row) => row.document !== gone)
        }
      expect(Reflect.get(index, "documents")).toHaveLength(most)
      for (const nowMs of [0, 1000]) {
        const query = { vector: roundedToHalves(next()), limit: 200, nowMs }
        const found = nowMs === 0 ? rows : rows.filter(({ document }) => document % 7 !== 6)
        expect(index.search(query)).toEqual(scored(found, query))
      }
    }),
  )
})

it("rows that are not kept are searched as those of an index are", () => {
  const next = vectors(20, 1)
  const rows = Array.from(
    { length: 50 },
    (_, chunk): Row => ({ document: 3, chunk, halves: toHalves(next()) }),
  )
  const query = { vector: roundedToHalves(next()), limit: 9, nowMs: 0 }
  const packed = pack(3, rows, 20)
  expect(searchPacked(packed, query)).toEqual(scored(rows, query))
  const ranges = [{ document: 3, from: 10, to: 12 }]
  expect(searchPacked(packed, { ...query, ranges })).toEqual(scored(rows.slice(10, 13), query))
  expect(searchPacked(packed, { ...query, nowMs: 3000 })).toEqual([])
})

it("keeps the largest sums of a row within 31 bits", () => {
  const dimensions = 5000
  const layout = layoutOf(dimensions)!
  const index = new RowIndex(new Slabs(slabs), layout)
  const same = unitPrefix(new Float32Array(dimensions).fill(1), dimensions)
  index.add(pack(1, [{ document: 1, chunk: 0, halves: toHalves(same) }], dimensions))
  const other = Array.from(
    { length: 5 },
    (_, chunk): Row => ({ document: 2, chunk, halves: toHalves(vectors(dimensions, 5)()) }),
  )
  index.add(pack(2, other, dimensions))
  const [hit] = index.search({ vector: roundedToHalves(same), limit: 1, nowMs: 0 })
  expect(hit).toEqual({ document: 1, chunk: 0, score: expect.closeTo(1, 2) })
})
