import { expect, test } from "vitest"
import { makeReclaim, v8Heap } from "./reclaim.ts"

const megabyte = 2 ** 20

const fixture = () => {
  const state = { megabytes: 50, hints: 0 }
  const due: (() => void)[] = []
  const released = makeReclaim({
    usedBytes: () => state.megabytes * megabyte,
    hint: () => void state.hints++,
    after: (_ms, look) => void due.push(look),
  })
  const look = () => due.shift()!()
  return { state, due, released, look }
}

test("a heap that large bodies left behind is collected, and one look is planned at a time", () => {
  const { state, due, released, look } = fixture()
  state.megabytes = 300
  released()
  released()
  expect(due).toHaveLength(1)
  look()
  expect(state.hints).toBe(1)
  state.megabytes = 55
  look()
  expect([state.hints, due.length]).toEqual([1, 0])
})

test("a heap that has hardly grown is left alone", () => {
  const { state, due, released, look } = fixture()
  state.megabytes = 100
  released()
  look()
  expect([state.hints, due.length]).toEqual([0, 0])
})

test("while bodies come, and until it has helped once after the last", () => {
  const { state, due, released, look } = fixture()
  state.megabytes = 300
  released()
  look()
  released()
  look()
  expect([state.hints, due.length]).toEqual([2, 1])
  state.megabytes = 50
  look()
  expect(due).toHaveLength(0)
})

test("what no collection frees is in use, until there is less", () => {
  const { state, due, released, look } = fixture()
  state.megabytes = 300
  released()
  look()
  look()
  expect([state.hints, due.length]).toEqual([1, 0])
  released()
  look()
  expect([state.hints, due.length]).toEqual([1, 0])
  state.megabytes = 60
  released()
  look()
  state.megabytes = 130
  released()
  look()
  expect(state.hints).toBe(2)
})

test("V8 collects after a hint", async () => {
  let isCollected = false
  const registry = new FinalizationRegistry(() => {
    isCollected = true
  })
  registry.register({ some: "garbage" }, undefined)
  v8Heap.hint()
  // by itself V8 does so after some 8 s
  await expect.poll(() => isCollected, { timeout: 5_000 }).toBe(true)
})
