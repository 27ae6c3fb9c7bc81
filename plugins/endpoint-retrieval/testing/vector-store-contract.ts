import { Effect } from "effect"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import type { Tenant } from "../../../core/index.ts"
import type { VectorSpace } from "../vectors/vector-store.ts"
import type { VectorFixture } from "./vector-fixture.ts"

let accounts = 0
/** Each test has an account of its own. */
const someone = (): Tenant => ({ account: `acct_${++accounts}`, mode: "live" })
const space: VectorSpace = { id: "flat", dimensions: 2 }
/** A vector whose prefix of two numbers has an angle; what follows is cut. */
const at = (degrees: number, length = 1) =>
  Float32Array.from([
    length * Math.cos((degrees * Math.PI) / 180),
    length * Math.sin((degrees * Math.PI) / 180),
    0.3,
  ])
const cos = (degrees: number): unknown => expect.closeTo(Math.cos((degrees * Math.PI) / 180), 2)

/** What each adapter of `VectorStore` keeps. */
export const vectorStoreContract = (name: string, open: () => Promise<VectorFixture>): void => {
  describe(`${name} keeps the contract of vector stores`, () => {
    let fixture: VectorFixture
    beforeAll(async () => {
      fixture = await open()
    })
    afterAll(() => fixture.close())

    it("finds the nearest by the prefix of the space, best first, whatever their lengths", async () => {
      const tenant = someone()
      const one = await fixture.add(tenant, space, [at(0, 0.1), at(60, 0.9), at(20)])
      const two = await fixture.add(tenant, space, [at(180), at(10)])
      expect(await fixture.search({ tenant, space, vector: at(0, 0.5) })).toEqual([
        [one, 0, cos(0)],
        [two, 1, cos(10)],
        [one, 2, cos(20)],
        [one, 1, cos(60)],
        [two, 0, cos(180)],
      ])
      expect(await fixture.search({ tenant, space, vector: at(11), limit: 1 })).toEqual([
        [two, 1, cos(1)],
      ])
    })

    it("orders equal scores by document and index", async () => {
      const tenant = someone()
      const same = [at(30), at(30), at(30)]
      const [one, two] = [
        await fixture.add(tenant, space, same),
        await fixture.add(tenant, space, same),
      ]
      const hits = await fixture.search({ tenant, space, vector: at(0), limit: 4 })
      expect(hits.map(([document, index]) => [document, index])).toEqual([
        [one, 0],
        [one, 1],
        [one, 2],
        [two, 0],
      ])
    })

    it("shows nothing of other accounts, modes and spaces, whatever is asked for", async () => {
      const tenant = someone()
      const own = await fixture.add(tenant, space, [at(90)])
      const others = [
        await fixture.add(someone(), space, [at(0)]),
        await fixture.add({ ...tenant, mode: "test" }, space, [at(0)]),
        await fixture.add(tenant, { ...space, id: "other" }, [at(0)]),
        await fixture.add(tenant, { ...space, dimensions: 3 }, [at(0)]),
      ]
      const query = { tenant, space, vector: at(0) }
      expect(await fixture.search(query)).toEqual([[own, 0, cos(90)]])
      const ranges = [...others, own].map((document) => ({ document }))
      expect(await fixture.search({ ...query, ranges })).toEqual([[own, 0, cos(90)]])
      expect(await fixture.search({ ...query, ranges: ranges.slice(0, -1) })).toEqual([])
      expect(await fixture.search({ ...query, tenant: someone() })).toEqual([])
    })

    it("searches ranges of chunks", async () => {
      const tenant = someone()
      const one = await fixture.add(
        tenant,
        space,
        [0, 10, 20, 30, 40].map((angle) => at(angle)),
      )
      const two = await fixture.add(tenant, space, [at(5), at(15)])
      const ranges = [
        { document: one, from: 1, to: 2 },
        { document: one, from: 4 },
        { document: two, to: 0 },
      ]
      const found = async (some: typeof ranges) => {
        const hits = await fixture.search({ tenant, space, vector: at(0), ranges: some })
        return hits.map(([document, index]) => [document, index])
      }
      expect(await found(ranges)).toEqual([
        [two, 0],
        [one, 1],
        [one, 2],
        [one, 4],
      ])
      expect(await found([])).toEqual([])
    })

    it("loses a document at once: when it is removed, and when it expires", async () => {
      const tenant = someone()
      const one = await fixture.add(tenant, space, [at(0), at(1)])
      const two = await fixture.add(tenant, space, [at(10)])
      const query = { tenant, space, vector: at(0) }
      expect((await fixture.search(query)).length).toBe(3)
      await fixture.hide(one)
      expect(await fixture.search(query)).toEqual([[two, 0, cos(10)]])
      const three = await fixture.add(tenant, space, [at(20)])
      expect((await fixture.search(query)).map(([document]) => document)).toEqual([two, three])
      fixture.clock.advance(1_000_001)
      expect(await fixture.search(query)).toEqual([])
    })

    it("says which chunks have no vector, replaces vectors, and removes them by space", async () => {
      const tenant = someone()
      const one = await fixture.add(tenant, space, [at(0), at(10), at(20), at(30)])
      const next: VectorSpace = { id: "next", dimensions: 3 }
      const { store, transaction } = fixture
      const missing = (where: VectorSpace, limit = 9) =>
        Effect.runPromise(store.missing(one, where, limit))
      expect(await missing(space)).toEqual([])
      expect(await missing(next, 3)).toEqual([0, 1, 2])
      await transaction((tx) => store.put(one, next, 1, [at(0), at(1)], tx))
      expect(await missing(next)).toEqual([0, 3])
      await transaction((tx) => store.put(one, space, 1, [at(0)], tx))
      expect((await fixture.search({ tenant, space, vector: at(0) })).slice(0, 2)).toEqual([
        [one, 0, cos(0)],
        [one, 1, cos(0)],
      ])
      await transaction((tx) => store.remove(one, tx, next))
      expect(await missing(space)).toEqual([0, 1, 2, 3])
      expect(await missing(next)).toEqual([0, 3])
      await transaction((tx) => store.remove(one, tx))
      expect(await missing(next)).toEqual([0, 1, 2, 3])
    })

    it("keeps nothing of a transaction that fails", async () => {
      const one = await fixture.add(someone(), space, [at(0), at(10)])
      const { store, database } = fixture
      const failing = database.transaction((tx) =>
        Effect.andThen(store.remove(one, tx), Effect.fail("no" as const)),
      )
      expect(await Effect.runPromise(Effect.flip(failing))).toBe("no")
      expect(await Effect.runPromise(store.missing(one, space, 9))).toEqual([])
    })

    it("takes vectors of thousands of numbers, and a document of many chunks", async () => {
      const tenant = someone()
      const wide: VectorSpace = { id: "wide", dimensions: 2048 }
      const vectors = Array.from({ length: 150 }, (_, i) =>
        Float32Array.from({ length: 2100 }, (_, k) => (k === i ? 1 : 0.001)),
      )
      const one = await fixture.add(tenant, wide, vectors)
      for (const i of [0, 74, 149])
        expect(
          await fixture.search({ tenant, space: wide, vector: vectors[i]!, limit: 1 }),
        ).toEqual([[one, i, cos(0)]])
      const ranges = [{ document: one, from: 100, to: 110 }]
      const query = { tenant, space: wide, vector: vectors[3]!, ranges, limit: 1 }
      const [hit, ...others] = await fixture.search(query)
      expect(others).toEqual([])
      expect(hit![1] >= 100 && hit![1] <= 110).toBe(true)
    })
  })
}
