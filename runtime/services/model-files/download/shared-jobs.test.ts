import { expect, it } from "vitest"
import type { Report } from "../context.ts"
import { makeSharedJobs } from "./shared-jobs.ts"

/** Runs that end when the test says so; an abort is noticed, and does not end them. */
const setUp = () => {
  const share = makeSharedJobs<string>()
  const runs: {
    readonly report: Report
    readonly signal: AbortSignal
    readonly resolve: (value: string) => void
    readonly reject: (error: unknown) => void
  }[] = []
  const start = (report: Report, signal: AbortSignal) =>
    new Promise<string>((resolve, reject) => runs.push({ report, signal, resolve, reject }))
  const join = (report: Report = () => {}) => {
    const controller = new AbortController()
    const result = share("key", start, report, controller.signal)
    result.catch(() => {})
    return { result, abort: (reason: unknown) => controller.abort(reason) }
  }
  return { runs, join }
}

it("shares a run, its progress and its error object", async () => {
  const { runs, join } = setUp()
  const seen: number[] = []
  const report: Report = (done) => seen.push(done)
  const callers = [join(report), join(report)]
  runs[0]?.report(1, 2)
  expect(seen).toEqual([1, 1])
  const error = new Error("no such file")
  runs[0]?.reject(error)
  for (const { result } of callers) await expect(result).rejects.toBe(error)
  expect(runs).toHaveLength(1)
})

it("an abort leaves with its reason and without further progress, and the others go on", async () => {
  const { runs, join } = setUp()
  const seen: string[] = []
  const first = join(() => seen.push("first"))
  const second = join(() => seen.push("second"))
  first.abort("tired")
  runs[0]?.report(1, 2)
  await expect(first.result).rejects.toBe("tired")
  expect(seen).toEqual(["second"])
  runs[0]?.resolve("done")
  expect(await second.result).toBe("done")
  expect(runs[0]?.signal.aborted).toBe(false)
})

it("aborts the run after its last caller, and waits for it before it rejects or begins another", async () => {
  const { runs, join } = setUp()
  const events: string[] = []
  const first = join()
  const second = join()
  first.abort("tired")
  second.abort("too")
  second.result.catch(() => events.push("rejected"))
  const third = join(() => events.push("progress"))
  expect(runs).toHaveLength(1)
  expect(runs[0]?.signal.aborted).toBe(true)
  runs[0]?.report(1, 2)
  await new Promise(setImmediate)
  expect(events).toEqual([])
  runs[0]?.reject(new Error("aborted"))
  await expect(second.result).rejects.toBe("too")
  await expect.poll(() => runs.length).toBe(2)
  runs[1]?.resolve("anew")
  expect(await third.result).toBe("anew")
  expect(events).toEqual(["rejected"])
})
