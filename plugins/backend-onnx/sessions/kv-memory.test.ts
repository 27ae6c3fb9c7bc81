import { expect, test } from "vitest"
import { KvMemory } from "./kv-memory.ts"

test("an array is taken again by who asks for its length", () => {
  const memory = new KvMemory(true)
  const [first, second] = [memory.take(128), memory.take(128)]
  expect(first).toEqual(new Uint16Array(128))
  memory.giveBack(first)
  expect(memory.take(64)).toHaveLength(64)
  expect(memory.take(128)).toBe(first)
  expect(memory.take(128)).not.toBe(first)
  memory.giveBack(second)
  memory.giveBack(first)
  expect([memory.take(128), memory.take(128)]).toEqual([first, second])
})

test("what waits takes 32 MB at most: those that wait longest go", () => {
  const memory = new KvMemory(false)
  const length = 3 * 2 ** 20 // floats: 12 MB
  const arrays = Array.from({ length: 6 }, () => memory.take(length))
  for (const array of arrays) memory.giveBack(array)
  const again = arrays.map(() => memory.take(length))
  expect(again.filter((array) => arrays.includes(array))).toHaveLength(2)
  expect(again.includes(arrays[0]!)).toBe(false)
})
