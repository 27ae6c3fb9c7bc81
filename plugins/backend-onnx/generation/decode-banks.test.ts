import fc from "fast-check"
import { expect, test } from "vitest"
import { runs } from "../../../testing/property.ts"
import { KvBank } from "../sessions/kv-bank.ts"
import { KvMemory } from "../sessions/kv-memory.ts"
import type { KvShape, KvStore } from "../sessions/kv-store.ts"
import { collectGarbage } from "../testing/collect-garbage.ts"
import { contentsOf } from "../testing/kv-in-memory.ts"
import { cheapestGroups, DecodeBanks } from "./decode-banks.ts"
import { KvCache } from "./kv-cache.ts"

const shape: KvShape = { layers: 1, kvHeads: 2, headSize: 1 }

interface Row {
  readonly id: number
  readonly cache: KvCache
  ended: boolean
}

const append = (row: Row, count: number): void => {
  row.cache.append(new Float32Array(4 * count).fill(row.id), count)
}
/** What a bank gives back is another's at once. */
const memory = new KvMemory(false)
/** Banks of which some cache has a row. */
let live = 0
class CountedBank extends KvBank {
  constructor(rows: number, capacity: number) {
    super(shape, rows, capacity, undefined, memory)
    live++
  }
  override another(rows: number, capacity: number): KvBank {
    return new CountedBank(rows, capacity)
  }
  override release(): void {
    live--
    super.release()
  }
}
const rowOf = (id: number, length: number): Row => {
  const row = { id, cache: new KvCache(new CountedBank(1, 128)), ended: false }
  row.cache.reserve(length)
  append(row, length)
  return row
}
const holdsItsOwn = (row: Row): boolean => {
  return contentsOf(row.cache).every((value) => value === row.id)
}

test("texts of like length go together, very different ones apart", () => {
  const lengths = (groups: readonly Row[][]) =>
    groups.map((group) => group.map((row) => row.cache.length))
  const rows = (of: readonly number[]) => of.map((length, id) => rowOf(id, length))
  expect(lengths(cheapestGroups(rows([100, 20, 300])))).toEqual([[20, 100, 300]])
  expect(lengths(cheapestGroups(rows([100, 8000, 20])))).toEqual([[20, 100], [8000]])
  expect(lengths(cheapestGroups(rows([5])))).toEqual([[5]])
  expect(cheapestGroups([])).toEqual([])
})

const event = fc.oneof(
  fc.record({
    what: fc.constant("join" as const),
    length: fc.oneof(fc.integer({ min: 1, max: 300 }), fc.constantFrom(127, 128, 5000)),
  }),
  fc.record({
    what: fc.constantFrom("end" as const, "pause" as const, "resume" as const),
    pick: fc.nat(),
  }),
  fc.record({ what: fc.constant("write" as const), count: fc.integer({ min: 1, max: 140 }) }),
)

const mostTokens = fc.constantFrom(Number.POSITIVE_INFINITY, 1024, 300)
const isWithin = ({ rows, capacity }: KvStore, most: number): boolean =>
  rows === 1 || rows * capacity <= most

test("whoever joins, leaves, pauses and grows: rows of a step lie side by side, with room, and each keeps its own", () => {
  fc.assert(
    fc.property(fc.array(event, { maxLength: 40 }), mostTokens, (events, most) => {
      const banks = new DecodeBanks<Row>(most)
      live = 0
      const [active, paused]: [Row[], Row[]] = [[], []]
      let nextId = 1
      for (const event of events) {
        if (event.what === "join" && active.length < 8) active.push(rowOf(nextId++, event.length))
        if (event.what === "end" && active.length) {
          const [row] = active.splice(event.pick % active.length, 1)
          row!.ended = true
          row!.cache.release()
          banks.dropEnded()
        }
        if (event.what === "pause" && active.length)
          paused.push(...active.splice(event.pick % active.length, 1))
        if (event.what === "resume" && paused.length)
          active.push(...paused.splice(event.pick % paused.length, 1))
        for (let step = 0; step < (event.what === "write" ? event.count : 1); step++) {
          const groups = banks.arrange(active)
          expect(groups.flat().length).toBe(active.length)
          for (const [row] of groups) expect(isWithin(row!.cache.bank, most)).toBe(true)
          for (const group of groups)
            for (const [index, row] of group.entries()) {
              expect(row.cache.bank).toBe(group[0]!.cache.bank)
              expect(row.cache.row).toBe(index)
              expect(row.cache.length).toBeLessThan(row.cache.capacity)
              append(row, 1)
            }
        }
        for (const row of [...active, ...paused]) expect(holdsItsOwn(row)).toBe(true)
      }
      for (const row of [...active, ...paused]) row.cache.release()
      expect(live).toBe(0)
    }),
    { numRuns: runs(100) },
  )
})

test("numbers that are not finite leave no trace in a bank", () => {
  const banks = new DecodeBanks<Row>()
  const rows = [rowOf(1, 10), rowOf(2, 10)]
  banks.arrange(rows)
  const fresh = new Float32Array(8).fill(1)
  fresh[3] = Number.NaN
  const [first, second] = rows as [Row, Row]
  expect([first.cache.append(fresh, 1, 1, 2, 0), second.cache.append(fresh, 1, 1, 2, 1)]).toEqual([
    true,
    false,
  ])
  expect((second.cache.bank as KvBank).arrays.every((array) => array.every(Number.isFinite))).toBe(
    true,
  )
})

test("once all rows have ended none is held, nor is its store", async () => {
  const banks = new DecodeBanks<Row>()
  const [stores, rows] = [[] as WeakRef<KvStore>[], [rowOf(1, 10), rowOf(2, 10)]]
  const end = () => {
    const row = rows.pop()!
    row.ended = true
    row.cache.release()
    banks.dropEnded()
  }
  const ids = () => banks.arrange(rows).map((group) => group.map(({ id }) => id))
  expect(ids()).toEqual([[1, 2]])
  stores.push(new WeakRef(rows[0]!.cache.bank))
  end()
  expect(ids()).toEqual([[1]])
  end()
  await collectGarbage()
  expect(stores.map((store) => store.deref())).toEqual([undefined])
})
