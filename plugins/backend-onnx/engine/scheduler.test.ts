import fc from "fast-check"
import { expect, test } from "vitest"
import type { Priority } from "./protocol.ts"
import { Scheduler } from "./scheduler.ts"

const settled = async (turns = 50): Promise<void> => {
  for (let i = 0; i < turns; i++) await new Promise((resolve) => setImmediate(resolve))
}

/** A scheduler whose jobs write down what happens. */
const desk = (slots: number) => {
  const log: string[] = []
  const scheduler = new Scheduler(slots, { done: (id) => log.push(`done ${id}`), failed: (id, cause) => log.push(`failed ${id} ${(cause as Error).message}`) })
  const submit = (id: number, steps: number, priority: Priority = "realtime", onStep: (left: number) => void = () => {}) =>
    scheduler.submit({
      id,
      priority,
      start: () => {
        log.push(`start ${id}`)
        let left = steps
        return {
          step: async () => {
            log.push(`step ${id}`)
            onStep(left)
            left--
            return left === 0
          },
        }
      },
    })
  return { scheduler, log, submit }
}

test("jobs in slots take turns, the others wait in order, realtime first", async () => {
  const { log, submit } = desk(2)
  submit(1, 2)
  submit(2, 3, "batch")
  submit(3, 1, "batch")
  submit(4, 1)
  await settled()
  expect(log).toEqual(["start 1", "start 4", "step 1", "step 4", "done 4", "start 2", "step 1", "done 1", "start 3", "step 2", "step 3", "done 3", "step 2", "step 2", "done 2"])
})

test("a cancel takes effect within one step, in a slot, in the queue, and in the middle of a step", async () => {
  const { scheduler, log, submit } = desk(1)
  submit(1, 100, "realtime", (left) => {
    if (left === 98) scheduler.cancel(1)
  })
  submit(2, 1)
  submit(3, 1)
  scheduler.cancel(2)
  await settled()
  expect(log).toEqual(["start 1", "step 1", "step 1", "step 1", "start 3", "step 3", "done 3"])
})

test("a job that fails does not disturb the others", async () => {
  const { log, submit } = desk(2)
  submit(1, 3)
  submit(2, 3, "realtime", () => {
    throw new Error("oh")
  })
  await settled()
  expect(log.filter((line) => !line.startsWith("st"))).toEqual(["failed 2 oh", "done 1"])
})

test("every job that is not cancelled ends once, whatever the order", async () => {
  await fc.assert(
    fc.asyncProperty(fc.integer({ min: 1, max: 4 }), fc.array(fc.tuple(fc.integer({ min: 1, max: 5 }), fc.boolean(), fc.boolean()), { maxLength: 12 }), async (slots, jobs) => {
      const { scheduler, log, submit } = desk(slots)
      for (const [id, [steps, batch]] of jobs.entries()) submit(id, steps, batch ? "batch" : "realtime")
      await settled(3)
      for (const [id, [, , cancelled]] of jobs.entries()) if (cancelled) scheduler.cancel(id)
      await settled(80)
      for (const [id, [steps, , cancelled]] of jobs.entries()) {
        const done = log.filter((line) => line === `done ${id}`).length
        if (!cancelled) expect([done, log.filter((line) => line === `step ${id}`).length]).toEqual([1, steps])
        else expect(done).toBeLessThanOrEqual(1)
      }
    }),
    { numRuns: 50 },
  )
})
