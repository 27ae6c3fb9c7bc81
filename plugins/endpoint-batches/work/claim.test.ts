import { array, assert, constantFrom, dictionary, integer, property } from "fast-check"
import { describe, expect, it } from "vitest"
import { type Candidate, chooseBatches, whoYields } from "./claim.ts"

const waiting = (tenants: string): readonly Candidate[] =>
  [...tenants].map((tenant, n) => ({ id: `${n}`, tenant }))
const ids = (chosen: readonly Candidate[]) => chosen.map(({ id }) => id).join("")

describe("which batches are next", () => {
  it.each([
    ["aaab", {}, 3, "031"],
    ["aaab", { b: 1 }, 3, "013"],
    ["aaab", { a: 2 }, 2, "30"],
    ["aaaaaa", {}, 6, "0123"],
    ["", {}, 6, ""],
    ["ab", {}, 0, ""],
  ])("of %s beside %o for %i places: %s", (tenants, running, free, expected) => {
    expect(
      ids(
        chooseBatches(waiting(tenants), {
          running: new Map(Object.entries(running)),
          free,
          perTenant: 4,
        }),
      ),
    ).toBe(expected)
  })

  it("nobody has a second one while somebody who waits has none, and of one tenant the oldest come first", () => {
    const tenant = constantFrom("a", "b", "c", "d")
    const inWork = dictionary(tenant, integer({ min: 1, max: 4 }))
    assert(
      property(
        array(tenant, { maxLength: 30 }),
        inWork,
        integer({ min: 0, max: 12 }),
        (tenants, running, free) => {
          const all = waiting(tenants.join(""))
          const before = new Map(Object.entries(running))
          const chosen = chooseBatches(all, { running: before, free, perTenant: 4 })
          const count = (who: string) =>
            (before.get(who) ?? 0) + chosen.filter((one) => one.tenant === who).length
          const left = all.filter((one) => !chosen.includes(one))
          for (const one of left)
            for (const other of chosen)
              if (count(one.tenant) < 4)
                expect(count(other.tenant)).toBeLessThanOrEqual(count(one.tenant) + 1)
          for (const who of ["a", "b", "c", "d"]) {
            const own = all.filter((one) => one.tenant === who)
            expect(chosen.filter((one) => one.tenant === who)).toEqual(
              own.slice(0, own.filter((one) => chosen.includes(one)).length),
            )
          }
          if (left.some((one) => count(one.tenant) < 4)) expect(chosen).toHaveLength(free)
        },
      ),
    )
  })

  it("who has several makes room for who has none", () => {
    expect(whoYields(waiting("c"), new Map(Object.entries({ a: 2, b: 3 })))).toBe("b")
    expect(whoYields(waiting("b"), new Map(Object.entries({ a: 3, b: 1 })))).toBeUndefined()
    expect(whoYields(waiting("c"), new Map(Object.entries({ a: 1, b: 1 })))).toBeUndefined()
    expect(whoYields([], new Map())).toBeUndefined()
  })
})
