import { expect, test } from "vitest"
import { makeQuietReclaim, makeReclaim, v8Heap } from "./reclaim.ts"

const megabyte = 2 ** 20

const fixture = () => {
  const state = { megabytes: 50, hints: 0 }
  const due: (() => void)[] = []
  const released = makeReclaim({
    usedBytes: () => state.megabytes * megabyte,
    committedBytes: () => 0,
    nowMs: () => 0,
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
  const state = { committed: 80, isIdle: true, hints: 0, nowMs: 1_000, waitsMs: [] as number[] }
  const due: { readonly atMs: number; readonly look: () => void }[] = []
  const served = makeQuietReclaim(() => state.isIdle, {
    usedBytes: () => 0,
    committedBytes: () => state.committed * megabyte,
    hint: () => void state.hints++,
    nowMs: () => state.nowMs,
    after: (ms, look) => {
      state.waitsMs.push(ms)
      due.push({ atMs: state.nowMs + ms, look })
    },
  })
  const look = () => {
    const next = due.shift()!
    state.nowMs = next.atMs
    next.look()
  }
  return { state, due, served, look }
}

test("a heap that has grown is collected 5 and 10 s after the last call", () => {
  const { state, due, served, look } = quietFixture()
  served()
  state.nowMs += 3_000
  served()
  look()
  expect([state.hints, state.waitsMs]).toEqual([0, [5_000, 3_000]])
  look()
  expect([state.hints, state.waitsMs]).toEqual([1, [5_000, 3_000, 5_000]])
  look()
  expect([state.hints, due.length]).toEqual([2, 0])
  for (const [committed, hints] of [
    [52, 0],
    [68, 0],
    [69, 2],
    [69, 2],
    [40, 0],
    [57, 2],
  ] as const) {
    state.committed = committed
    state.hints = 0
    served()
    look()
    if (due.length > 0) look()
    expect([committed, state.hints, due.length]).toEqual([committed, hints, 0])
  }
})

test("a call between the two begins anew", () => {
  const { state, due, served, look } = quietFixture()
  served()
  look()
  expect(state.hints).toBe(1)
  state.nowMs += 1_000
  served()
  // what the first collection left is small, and stays so
  state.committed = 52
  look()
  look()
  expect([state.hints, due.length]).toEqual([1, 0])
})

test("while a call is served it is left alone", () => {
  const { state, due, served, look } = quietFixture()
  served()
  state.isIdle = false
  look()
  look()
  expect([state.hints, state.waitsMs]).toEqual([0, [5_000, 5_000, 5_000]])
  state.isIdle = true
  look()
  look()
  expect([state.hints, due.length]).toEqual([2, 0])
})
