import fc from "fast-check"
import { expect, test } from "vitest"
import { runs } from "../../../testing/property.ts"
import type { Priority } from "./protocol.ts"
import { type RunningJob, Scheduler } from "./scheduler.ts"
import { order, schedulerFixture, settled } from "./testing/scheduler-fixture.ts"

test("jobs in slots are worked on together, the others wait in order, realtime first", async () => {
  const { log, submit } = schedulerFixture()
  submit({ id: 1, writes: 2 })
  submit({ id: 2, writes: 3, priority: "batch" })
  submit({ id: 3, writes: 1, priority: "batch" })
  submit({ id: 4, writes: 1 })
  await settled()
  expect(log).toEqual([
    "start 1",
    "start 4",
    "write 1",
    "write 4",
    "done 4",
    "start 2",
    "write 1",
    "write 2",
    "done 1",
    "start 3",
    "write 2",
    "write 3",
    "done 3",
    "write 2",
    "done 2",
  ])
})

test("one account with many requests does not keep another waiting", async () => {
  const { log, submit } = schedulerFixture({ slots: 4 })
  for (let id = 1; id <= 50; id++) submit({ id, writes: 3, account: "many" })
  submit({ id: 100, writes: 3, account: "few" })
  submit({ id: 101, writes: 3, account: "few" })
  await settled(200)
  expect(order(log, "start").indexOf(100)).toBeLessThan(4)
  expect(order(log, "start").indexOf(101)).toBeLessThan(4)
  expect(order(log, "done")).toHaveLength(52)
})

test("accounts take turns in reading, whatever the length of their prompts", async () => {
  const { log, submit } = schedulerFixture({ slots: 8 })
  for (let id = 1; id <= 6; id++) submit({ id, reads: 20, account: "long" })
  submit({ id: 9, reads: 3, account: "short" })
  await settled(300)
  expect(order(log, "read").lastIndexOf(9)).toBeLessThan(6)
  // an account's own prompts are prefilled one after the other, so that the first answer starts
  // early
  expect(order(log, "read").slice(6, 16)).toEqual(new Array(10).fill(1))
})

test("who comes back after every turn does not keep another one from its own", async () => {
  const led: string[] = []
  const left = new Map([["long", 5]])
  // a step ends its job, except the long one, and the account submits again at once
  const step = async (
    running: readonly RunningJob<string>[],
    turn: (among: readonly RunningJob<string>[]) => RunningJob<string>,
  ) => {
    const of = turn(running)
    led.push(of.account)
    left.set(of.account, (left.get(of.account) ?? 30) - 1)
    if (of.account === "quick" && left.get("quick")! > 0) submit("quick")
    return of.account === "quick" || left.get("long") === 0 ? [{ of }] : []
  }
  const outcome = { done: () => {}, failed: () => {}, busy: () => {} }
  const scheduler = new Scheduler<string>(
    { step, release: () => {} },
    { slots: 8, capacity: Number.POSITIVE_INFINITY, nowMs: () => 0 },
    outcome,
  )
  let id = 0
  const submit = (account: string) =>
    scheduler.submit({
      id: id++,
      account,
      priority: "realtime",
      waitMs: 1,
      size: 0,
      start: () => account,
    })
  submit("long")
  submit("quick")
  await settled()
  expect(led.slice(0, 10).filter((account) => account === "long")).toHaveLength(5)
  expect(led).toHaveLength(35)
})

test("batch work gives its slot to real time and goes on afterwards", async () => {
  const { log, submit, scheduler } = schedulerFixture({ slots: 1 })
  submit({ id: 1, writes: 6, priority: "batch" })
  await settled(4)
  submit({ id: 2, writes: 2 })
  submit({ id: 3, writes: 2, priority: "batch" })
  await settled()
  const lines = log.join()
  expect(lines).toContain("start 2,write 2,write 2,done 2,write 1")
  expect(order(log, "done")).toEqual([2, 1, 3])
  await scheduler.stop()
})

test("who may not wait is refused at once when all slots are taken, who may wait when its time is over", async () => {
  const { log, submit } = schedulerFixture({ slots: 1 })
  submit({ id: 1, writes: 20 })
  submit({ id: 2, waitMs: 0 })
  submit({ id: 3, waitMs: 100 })
  submit({ id: 4, waitMs: 500 })
  await settled(80)
  expect(log.indexOf("busy 2")).toBeLessThan(3)
  expect(order(log.slice(0, log.indexOf("busy 3")), "write").length).toBeGreaterThanOrEqual(9)
  expect(order(log, "busy")).toEqual([2, 3])
  expect(order(log, "done")).toEqual([1, 4])
})

test("what runs fits into the room; a large request is not overtaken for ever; batch leaves half to real time", async () => {
  const { log, submit, state } = schedulerFixture({ slots: 8, capacity: 100 })
  submit({ id: 1, writes: 3, size: 60 })
  submit({ id: 2, writes: 3, size: 50 })
  for (let id = 3; id < 9; id++) submit({ id, writes: 3, size: 10 })
  await settled(100)
  expect(state.mostHeld).toBeLessThanOrEqual(100)
  expect(order(log, "start")[1]).toBe(2)
  const second = schedulerFixture({ slots: 8, capacity: 100 })
  for (let id = 1; id < 9; id++) second.submit({ id, writes: 10, size: 20, priority: "batch" })
  await settled(6)
  expect(second.holds.size).toBe(2)
  second.submit({ id: 10, size: 50, waitMs: 0 })
  await settled(200)
  expect(order(second.log, "done")).toContain(10)
  expect(order(second.log, "done")).toHaveLength(9)
})

test("a cancel takes effect within one step: in a slot, in the queue, in the middle of a step, and when paused", async () => {
  const { scheduler, log, submit, holds } = schedulerFixture({ slots: 1 })
  let steps = 0
  submit({
    id: 1,
    writes: 100,
    onStep: () => {
      steps++
      if (steps === 3) scheduler.cancel(1)
    },
  })
  submit({ id: 2 })
  submit({ id: 3 })
  scheduler.cancel(2)
  await settled()
  expect(log).toEqual(["start 1", "write 1", "write 1", "write 1", "start 3", "write 3", "done 3"])
  submit({ id: 4, writes: 100, priority: "batch" })
  await settled(4)
  submit({ id: 5, writes: 100 })
  await settled(4)
  scheduler.cancel(4)
  scheduler.cancel(5)
  await settled(4)
  const before = log.length
  await settled(4)
  expect(log.length).toBe(before)
  expect(holds.size).toBe(0)
})

test("a job that fails does not disturb the others", async () => {
  const { log, submit } = schedulerFixture()
  const oh = () => {
    throw new Error("oh")
  }
  submit({ id: 1, writes: 3 })
  submit({ id: 2, writes: 3, onStep: oh })
  await settled()
  expect(log.filter((line) => /^(done|failed)/.test(line))).toEqual(["failed 2 oh", "done 1"])
})

const arrival = fc.record({
  atStep: fc.nat(20),
  reads: fc.nat(4),
  writes: fc.integer({ min: 1, max: 6 }),
  size: fc.integer({ min: 1, max: 60 }),
  account: fc.constantFrom("a", "b", "c"),
  priority: fc.constantFrom<Priority>("realtime", "realtime", "batch"),
  waitMs: fc.constantFrom(0, 50, Number.POSITIVE_INFINITY),
  cancelAt: fc.option(fc.nat(40), { nil: undefined }),
})

test("whatever comes and goes: slots and room hold, every job ends once, and none is refused before its time", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 1, max: 4 }),
      fc.array(arrival, { minLength: 1, maxLength: 16 }),
      async (slots, arrivals) => {
        const { scheduler, log, submit, state, holds } = schedulerFixture({ slots, capacity: 100 })
        const submittedMs = new Map<number, number>()
        const cancelled = new Set<number>()
        for (let step = 0; step < 60; step++) {
          for (const [id, { atStep, cancelAt, ...request }] of arrivals.entries()) {
            if (atStep === step) submit({ id, ...request })
            if (atStep === step) submittedMs.set(id, state.nowMs)
            if (cancelAt === step && submittedMs.has(id)) {
              scheduler.cancel(id)
              cancelled.add(id)
            }
          }
          await settled(1)
        }
        await settled(200)
        expect(state.mostRunning).toBeLessThanOrEqual(slots)
        expect(state.mostHeld).toBeLessThanOrEqual(100)
        expect(holds.size).toBe(0)
        for (const [id, { writes, waitMs, priority }] of arrivals.entries()) {
          const ends = [...order(log, "done"), ...order(log, "busy")].filter(
            (other) => other === id,
          )
          if (cancelled.has(id)) expect(ends.length).toBeLessThanOrEqual(1)
          else expect([id, ends.length]).toEqual([id, 1])
          if (order(log, "done").includes(id))
            expect(order(log, "write").filter((other) => other === id)).toHaveLength(writes)
          if (order(log, "busy").includes(id))
            expect([waitMs < Number.POSITIVE_INFINITY, priority]).toContain(true)
        }
      },
    ),
    { numRuns: runs(60) },
  )
})

test("a job grows into the slots that nobody waits for, and keeps one", async () => {
  const rows = new Map([
    ["wide", 1],
    ["batch", 1],
  ])
  const most: number[] = []
  let steps = 0
  const scheduler = new Scheduler<string>(
    {
      step: async (running) => {
        steps++
        most.push(running.reduce((sum, { job }) => sum + (rows.get(job) ?? 1), 0))
        if (steps === 3) submit("late", "realtime")
        return running.filter(({ job }) => job === "late" || steps > 8).map((of) => ({ of }))
      },
      release: (job) => void rows.delete(job),
      slotsOf: (job) => rows.get(job) ?? 1,
      grow: (job) => {
        const own = rows.get(job) ?? 0
        if (own === 0 || own === 3) return false
        rows.set(job, own + 1)
        return true
      },
    },
    { slots: 4, capacity: Number.POSITIVE_INFINITY, nowMs: () => 0 },
    { done: (id) => ended.push(id), failed: () => {}, busy: () => {} },
  )
  const ended: number[] = []
  const ids = { wide: 1, batch: 2, late: 3 }
  const submit = (job: keyof typeof ids, priority: Priority) =>
    scheduler.submit({
      id: ids[job],
      account: job,
      priority,
      waitMs: Number.POSITIVE_INFINITY,
      size: 0,
      start: () => job,
    })
  submit("wide", "realtime")
  submit("batch", "batch")
  await settled()
  // the batch's job gives its slot to the late one, and comes back
  expect(ended).toEqual([3, 1, 2])
  expect(Math.max(...most)).toBe(4)
})
