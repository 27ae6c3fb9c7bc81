import { expect, test } from "vitest"
import { Cancelled, Stepped } from "./stepped.ts"

test("runs from pause to pause, and keeps what it has between them", async () => {
  const seen: number[] = []
  const job = new Stepped(async (pause) => {
    for (let i = 0; i < 3; i++) {
      seen.push(i)
      await pause()
    }
  })
  expect(seen).toEqual([])
  expect(await job.next()).toBe(false)
  expect(seen).toEqual([0])
  expect([await job.next(), await job.next(), await job.next()]).toEqual([false, false, true])
  expect(seen).toEqual([0, 1, 2])
})

test("a cancelled one ends at its pause, and runs its finally", async () => {
  let cause: unknown
  const job = new Stepped(async (pause) => {
    try {
      await pause()
    } catch (error) {
      cause = error
      throw error
    }
  })
  await job.next()
  job.cancel()
  await new Promise((resolve) => setImmediate(resolve))
  expect(cause).toBeInstanceOf(Cancelled)
})

test("one that is cancelled while it runs ends at its next pause", async () => {
  const job: Stepped = new Stepped(async (pause) => {
    job.cancel()
    await pause()
    throw new Error("went on")
  })
  await expect(job.next()).rejects.toBeInstanceOf(Cancelled)
})

test("fails as its function does, at any step", async () => {
  const job = new Stepped(async (pause) => {
    await pause()
    throw new Error("broken")
  })
  expect(await job.next()).toBe(false)
  await expect(job.next()).rejects.toThrow("broken")
})
