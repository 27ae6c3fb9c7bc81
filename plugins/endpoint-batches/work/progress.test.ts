import { Effect } from "effect"
import { assert, integer, property, shuffledSubarray } from "fast-check"
import { expect, it } from "vitest"
import { makeProgress } from "./progress.ts"

const all = Array.from({ length: 20 }, (_, n) => n + 1)

it("covers what is done without a gap, in whatever order it was", () => {
  assert(
    property(shuffledSubarray(all), integer({ min: 1, max: 8 }), (done, segmentLines) => {
      const progress = makeProgress({ segmentBytes: 1_000, segmentLines, maxLines: 100 })
      for (const line of all) progress.passed(line * 2, line * 10)
      const seen = new Set<number>()
      let through = 0
      for (const line of done) {
        progress.done(line * 2, 1)
        seen.add(line)
        let next = through
        while (seen.has(next + 1)) next += 1
        expect(progress.completed).toEqual(
          next - through >= segmentLines ? { through: next * 2, offset: next * 10 } : undefined,
        )
        if (progress.completed && line % 2 === 0) {
          progress.forget(progress.completed)
          through = next
          expect(progress.completed).toBeUndefined()
        }
      }
    }),
  )
})

it("is worth a segment by its bytes too, and holds lines back while too many wait", async () => {
  const progress = makeProgress({ segmentBytes: 100, segmentLines: 1_000, maxLines: 3 })
  for (const line of [1, 2, 3]) progress.passed(line, line)
  let hasCapacity = false
  const waiting = Effect.runPromise(progress.capacity).then(() => {
    hasCapacity = true
  })
  progress.done(2, 100)
  expect(progress.completed).toBeUndefined()
  progress.done(1, 1)
  await Promise.resolve()
  expect(hasCapacity).toBe(false)
  progress.forget(progress.completed!)
  await waiting
})
