import { expect, test } from "vitest"
import { collectGarbage } from "../testing/collect-garbage.ts"
import { KvMemory } from "./kv-memory.ts"
import type { KvNumbers } from "./kv-store.ts"

test("an array is taken again by who asks for its length", () => {
  const memory = new KvMemory(true)
  const [first, second] = [memory.take(128), memory.take(128)]
  expect(first).toEqual(new Uint16Array(128))
  memory.giveBack([first])
  expect(memory.take(64)).toHaveLength(64)
  expect(memory.take(128)).toBe(first)
  expect(memory.take(128)).not.toBe(first)
  memory.giveBack([second, first])
  expect([memory.take(128), memory.take(128)]).toEqual([first, second])
})

/** Whether `memory` still has each of the arrays. */
const keeps = (memory: KvMemory, arrays: readonly KvNumbers[]): readonly boolean[] => {
  const again = arrays.map(({ length }) => memory.take(length))
  return arrays.map((array) => again.includes(array))
}

test("what waits takes 8 MB at most: those that wait longest go", () => {
  const memory = new KvMemory(false)
  const length = 3 * 2 ** 18 // floats: 3 MB
  const arrays = Array.from({ length: 6 }, () => memory.take(length))
  for (const array of arrays) memory.giveBack([array])
  expect(keeps(memory, arrays)).toEqual([false, false, false, false, true, true])
})

test("the last bank waits alone where it is larger, up to 32 MB", () => {
  const memory = new KvMemory(false)
  const megabyte = 2 ** 18
  const small = [memory.take(megabyte), memory.take(megabyte)]
  const large = [memory.take(12 * megabyte), memory.take(10 * megabyte)]
  memory.giveBack(small)
  memory.giveBack(large)
  expect(keeps(memory, [...small, ...large])).toEqual([false, false, true, true])
  const huge = [memory.take(21 * megabyte), memory.take(20 * megabyte)]
  memory.giveBack(huge)
  expect(keeps(memory, huge)).toEqual([false, true])
})

test("what goes is memory of the system again at once, without a collection", () => {
  const memory = new KvMemory(true)
  const arrays = Array.from({ length: 12 }, () => memory.take(2 ** 20)) // 2 MB each
  const before = process.memoryUsage().arrayBuffers
  memory.giveBack(arrays.slice(0, 4))
  memory.giveBack(arrays.slice(4))
  expect(before - process.memoryUsage().arrayBuffers).toBeGreaterThan(7 * 2 ** 20)
  expect(arrays.map(({ length }) => length > 0)).toEqual(arrays.map((_, at) => at >= 4))
})

test("a full collection frees what waits", async () => {
  const memory = new KvMemory(true)
  const length = 4_096
  memory.giveBack([memory.take(length).fill(7) as KvNumbers])
  expect(memory.take(length)[0]).toBe(7)
  memory.giveBack([memory.take(length).fill(7) as KvNumbers])
  await collectGarbage()
  expect(memory.take(length)[0]).toBe(0)
})
