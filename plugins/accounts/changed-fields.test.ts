import fc from "fast-check"
import { expect, it } from "vitest"
import { changedFields } from "./changed-fields.ts"

it("shows what differs, and of objects only the fields that do", () => {
  expect(
    changedFields({ a: 1, b: { c: 1, d: [1] }, e: null }, { a: 1, b: { c: 2, d: [1] }, e: null }),
  ).toEqual({ before: { b: { c: 1 } }, after: { b: { c: 2 } } })
  expect(changedFields({ a: 1 }, { a: 1 })).toBeUndefined()
  expect(changedFields({ a: ["x"] }, { a: ["x", "y"] })).toEqual({
    before: { a: ["x"] },
    after: { a: ["x", "y"] },
  })
})

it("put over the old state gives the new one", () => {
  const leaf = fc.oneof(
    fc.integer(),
    fc.string(),
    fc.boolean(),
    fc.constant(null),
    fc.array(fc.integer()),
  )
  const state = fc.record({ a: leaf, b: leaf, limits: fc.record({ c: leaf, d: leaf }) })
  fc.assert(
    fc.property(state, state, (before, after) => {
      const changed = changedFields(before, after) ?? { before: {}, after: {} }
      const put = (over: Record<string, unknown>, onto: typeof before) => ({
        ...onto,
        ...over,
        limits: { ...onto.limits, ...(over.limits as object | undefined) },
      })
      expect(put(changed.after, before)).toEqual(after)
      expect(put(changed.before, after)).toEqual(before)
    }),
  )
})
