import fc from "fast-check"
import { expect, test } from "vitest"
import { BriefMap } from "./brief-map.ts"

const key = fc.integer({ min: 0, max: 5 })
const step = fc.oneof(
  fc.record({ type: fc.constant("set" as const), key, value: fc.integer() }),
  fc.record({ type: fc.constant("delete" as const), key }),
)

test("has what a Map has, in the order in which each entry was last set", () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
      const brief = new BriefMap<number, number>()
      const map = new Map<number, number>()
      for (const one of steps) {
        map.delete(one.key)
        if (one.type === "set") {
          map.set(one.key, one.value)
          brief.set(one.key, one.value)
        } else brief.delete(one.key)
        expect(brief.values()).toEqual([...map.values()])
        expect([brief.size, brief.oldestKey(), brief.oldest()]).toEqual([
          map.size,
          map.keys().next().value,
          map.values().next().value,
        ])
        for (let k = 0; k <= 5; k++) {
          expect(brief.get(k)).toBe(map.get(k))
          expect(brief.has(k)).toBe(map.has(k))
        }
      }
    }),
  )
})
