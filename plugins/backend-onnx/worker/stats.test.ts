import { expect, test } from "vitest"
import { makeEngineStats } from "./stats.ts"

const stats = (prefixCacheQueries: number, prefixCacheHits: number) => ({
  kvCacheUsage: 0.5,
  prefixCacheUsage: 0.25,
  prefixCacheQueries,
  prefixCacheHits,
})

test("an encoder has restarts only", () => {
  expect(makeEngineStats().read()).toEqual({ restarts: 0 })
})

test("totals outlive the thread that counted them, and its memory is free", () => {
  const engine = makeEngineStats()
  engine.update(stats(100, 40))
  engine.update(stats(150, 60))
  engine.lose()
  engine.restart()
  expect(engine.read()).toEqual({
    restarts: 1,
    kvCacheUsage: 0,
    prefixCacheUsage: 0,
    prefixCacheQueries: 150,
    prefixCacheHits: 60,
  })
  engine.update({ ...stats(0, 0), adapterBytes: 9 })
  engine.lose()
  expect(engine.read()).toMatchObject({ adapterBytes: 0 })
  engine.update(stats(10, 5))
  engine.lose()
  engine.lose()
  expect(engine.read()).toMatchObject({ prefixCacheQueries: 160, prefixCacheHits: 65 })
})
