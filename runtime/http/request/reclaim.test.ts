import { expect, test } from "vitest"
import { makeQuietReclaim, makeReclaim, v8Heap } from "./reclaim.ts"

const megabyte = 2 ** 20

const fixture = () => {
  const state = { megabytes: 50, hints: 0 }
  const due: (() => void)[] = []
  const released = makeReclaim({
    usedBytes: () => state.megabytes * megabyte,
    emptyBytes: () => 0,
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

const quietFixture = () => {
  const state = { empty: 30, hints: 0, isIdle: true, waitsMs: [] as number[] }
  const due: (() => void)[] = []
  const served = makeQuietReclaim(() => state.isIdle, {
    usedBytes: () => 0,
    emptyBytes: () => state.empty * megabyte,
    hint: () => void state.hints++,
    after: (ms, look) => {
      state.waitsMs.push(ms)
      due.push(look)
    },
  })
  return { state, due, served, look: () => due.shift()!() }
}

test("a server that has little to do gives an empty heap back, in two collections at most", () => {
  const { state, due, served, look } = quietFixture()
  served()
  served()
  expect(due).toHaveLength(1)
  look()
  expect(state.hints).toBe(1)
  look()
  expect(state.hints).toBe(2)
  state.empty = 16
  look()
  expect([state.hints, due.length]).toEqual([2, 0])
  served()
  look()
  expect([state.hints, due.length]).toEqual([2, 0])
  state.empty = 17
  served()
  look()
  expect([state.hints, due.length]).toEqual([3, 1])
  expect(state.waitsMs).toEqual([5_000, 2_500, 2_500, 5_000, 5_000, 2_500])
})

test("a busy one keeps it until it is quiet, and serves nothing", () => {
  const { state, due, served, look } = quietFixture()
  for (let at = 0; at < 27; at++) {
    served()
    if (at === 0) expect(due).toHaveLength(1)
  }
  look()
  expect([state.hints, due.length]).toEqual([0, 1])
  for (let at = 0; at < 26; at++) served()
  look()
  expect([state.hints, due.length]).toEqual([0, 1])
  state.isIdle = false
  look()
  expect([state.hints, due.length]).toEqual([0, 1])
  state.isIdle = true
  for (let at = 0; at < 25; at++) served()
  look()
  expect([state.hints, due.length]).toEqual([1, 1])
})

test("where collections don't help, they become rare, until they do", () => {
  const { state, due, served, look } = quietFixture()
  served()
  for (let at = 0; at < 27; at++) look()
  expect(state.hints).toBe(18)
  const waits = state.waitsMs.filter((ms) => ms !== 2_500)
  expect(waits.map((ms) => ms / 1000)).toEqual([5, 10, 20, 40, 80, 160, 320, 600, 600, 600])
  state.empty = 3
  look()
  expect(due).toHaveLength(0)
  state.empty = 30
  served()
  for (let at = 0; at < 3; at++) look()
  expect(state.waitsMs.slice(-4)).toEqual([5_000, 2_500, 2_500, 10_000])
})

test("V8 says how much of its heap is empty", () => {
  expect(v8Heap.emptyBytes()).toBeGreaterThan(0)
})
