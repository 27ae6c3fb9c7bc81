import { truncateSync, writeFileSync } from "node:fs"
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { failsOn, line, useRunFile } from "../testing/run-file-fixture.ts"
import { numbers } from "../testing/work-fixture.ts"
import type { BatchFileSums } from "./job.ts"

const { prepare, write, read, path } = useRunFile()

describe("an interrupted run", () => {
  it("goes on wherever its two files were cut, and the result is that of one run; no line runs that was done", async () => {
    const failing = [3, 4, 9, 15]
    write(
      ...numbers(20).map((n) => line(n, { custom_id: n === 7 ? 'odd "id" \\ é\n' : `line ${n}` })),
    )
    await prepare(failsOn(...failing)).run()
    const whole = [read("out.jsonl"), read("errors.jsonl")] as const
    await fc.assert(
      fc.asyncProperty(
        fc.nat(whole[0].length),
        fc.nat(whole[1].length),
        async (outputBytes, errorBytes) => {
          for (const [at, name] of ["out.jsonl", "errors.jsonl"].entries())
            writeFileSync(path(name), whole[at] ?? "")
          truncateSync(path("out.jsonl"), outputBytes)
          truncateSync(path("errors.jsonl"), errorBytes)
          const kept = [
            read("out.jsonl").split("\n").length - 1,
            read("errors.jsonl").split("\n").length - 1,
          ] as const
          const { run, ran } = prepare(failsOn(...failing))
          const sums = (await run({ resume: true })) as BatchFileSums
          expect([read("out.jsonl"), read("errors.jsonl")]).toEqual(whole)
          expect(sums).toMatchObject({
            lines: 20,
            completed: 16,
            failed: 4,
            earlier: 20 - ran.length,
          })
          // as many as both files hold without a gap
          const gap = numbers(20).findIndex((n) =>
            failing.includes(n)
              ? failing.indexOf(n) >= kept[1]
              : n - failing.filter((f) => f < n).length >= kept[0],
          )
          expect(ran.toSorted((a, b) => a - b)).toEqual(gap < 0 ? [] : numbers(20).slice(gap))
        },
      ),
      { numRuns: 25 },
    )
  }, 60_000)

  it("that was cut in its very first line begins anew, and a finished one has nothing to do", async () => {
    write(line(0), line(1))
    writeFileSync(path("out.jsonl"), '{"id":"batch_')
    expect(await prepare().run({ resume: true })).toMatchObject({ earlier: 0, completed: 2 })
    const { run, ran, opened } = prepare()
    expect(await run({ resume: true })).toMatchObject({ earlier: 2, completed: 2 })
    expect([ran, opened]).toEqual([[], []])
  })

  it("is not mixed with the results of another input", async () => {
    write(line(0), line(1))
    await prepare().run()
    const before = read("out.jsonl")
    write(line(5), line(0))
    expect(await prepare().run({ resume: true })).toMatchObject({
      message: expect.stringContaining("not made from this input"),
    })
    expect(read("out.jsonl")).toBe(before)
  })
})
