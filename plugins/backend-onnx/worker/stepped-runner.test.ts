import { expect, test } from "vitest"
import type { RunningJob } from "./scheduler.ts"
import { Stepped } from "./stepped.ts"
import { SteppedRunner } from "./stepped-runner.ts"

/** Jobs whose steps take so long by a clock that only they move. */
const bench = () => {
  let nowMs = 0
  const order: string[] = []
  const runner = new SteppedRunner(() => nowMs)
  const job = (
    account: string,
    stepMs: number,
    priority: "realtime" | "batch" = "realtime",
  ): RunningJob<Stepped> => ({
    id: order.length,
    account,
    priority,
    job: new Stepped(async (pause) => {
      for (;;) {
        order.push(account)
        nowMs += stepMs
        await pause()
      }
    }),
  })
  const run = async (jobs: readonly RunningJob<Stepped>[], steps: number) => {
    order.length = 0
    for (let i = 0; i < steps; i++) await runner.step(jobs)
    return order
  }
  const count = (account: string) => order.filter((other) => other === account).length
  return { job, run, count, runner }
}

test("accounts share the time, not the steps", async () => {
  const { job, run, count } = bench()
  await run([job("large", 10_000), job("small", 50)], 1_005)
  expect(count("large")).toBe(5)
  expect(count("small")).toBe(1_000)
})

test("an account with two pictures gets no more than one with one", async () => {
  const { job, run, count } = bench()
  await run([job("a", 10), job("a", 10), job("b", 10)], 40)
  expect(count("b")).toBe(20)
})

test("one that comes later does not catch up on the time before it came", async () => {
  const { job, run, count } = bench()
  const early = job("early", 10)
  await run([early], 100)
  await run([early, job("late", 10)], 20)
  expect(count("late")).toBe(10)
})

test("lines of batches yield, but go on", async () => {
  const { job, run, count } = bench()
  await run([job("user", 10), job("batch", 10, "batch")], 32)
  expect(count("batch")).toBe(2)
})

test("a job that fails ends alone", async () => {
  const { job, runner } = bench()
  const cause = new Error("broken")
  const bad = { ...job("bad", 1), job: new Stepped(() => Promise.reject(cause)) }
  expect(await runner.step([bad, job("good", 1)])).toEqual([{ of: bad, cause }])
})
