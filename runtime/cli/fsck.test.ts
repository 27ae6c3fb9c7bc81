import { Effect, Stream } from "effect"
import { describe, expect, it } from "vitest"
import { PortError } from "../../core/errors.ts"
import type { ConsistencyCheck, Finding } from "../../core/ports/consistency.ts"
import { fakeClock } from "../../testing/fakes/clock.ts"
import { makeProgress } from "./fsck-progress.ts"
import { isClean, maxShown, runCheck } from "./fsck-run.ts"
import { checkText, reportsJson, summaryText } from "./fsck-text.ts"

const broken = new PortError({ port: "storage", message: "the disk is gone" })
const checkOf = (findings: Stream.Stream<Finding, PortError>, things = 7): ConsistencyCheck => ({
  name: "things",
  about: "things are there",
  findings: (looked) =>
    Stream.concat(Stream.fromEffectDrain(Effect.sync(() => looked(things))), findings),
})
const run = (check: ConsistencyCheck, repair = false) =>
  Effect.runPromise(runCheck(check, repair, () => {}))
const repairable = (repair: Effect.Effect<void, PortError> = Effect.void): Finding => ({
  subject: "blob a",
  problem: "nobody names it",
  remedy: "it is removed",
  repair,
})
const lost: Finding = { subject: "file b", problem: "its bytes are missing" }

describe("a check", () => {
  it("that finds nothing is clean, and says what it compared and how much", async () => {
    const report = await run(checkOf(Stream.empty, 1234))
    expect(isClean(report)).toBe(true)
    expect(checkText(report)).toBe("ok      things: things are there (1,234 looked at)\n")
    expect(summaryText([report, report])).toBe("Clean: 2 checks, 2,468 looked at.\n")
    expect(JSON.parse(reportsJson([report]))).toMatchObject({
      object: "fsck",
      clean: true,
      checks: [{ name: "things", looked: 1234, found: 0, findings: [] }],
    })
  })

  it("says what it would repair, and touches nothing unless asked to", async () => {
    let repaired = 0
    const check = checkOf(Stream.make(repairable(Effect.sync(() => void repaired++)), lost))
    const report = await run(check)
    expect([repaired, isClean(report)]).toEqual([0, false])
    expect(checkText(report)).toBe(
      "FOUND   things: things are there (7 looked at)\n          blob a: nobody names it (--repair: it is removed)\n          file b: its bytes are missing (a person has to look)\n",
    )
    expect(summaryText([report])).toBe(
      "2 findings in 1 check, 7 looked at; --repair would repair 1; 1 for a person to look at.\n",
    )
  })

  it("repairs what has a remedy; what has none, or could not be repaired, is left", async () => {
    let repaired = 0
    const works = repairable(Effect.sync(() => void repaired++))
    const whole = await run(checkOf(Stream.make(works)), true)
    expect([repaired, isClean(whole), checkText(whole)]).toEqual([
      1,
      true,
      "repaired  things: things are there (7 looked at)\n          blob a: nobody names it (repaired: it is removed)\n",
    ])
    const partly = await run(
      checkOf(
        Stream.make(works, lost, repairable(Effect.fail(broken)), repairable(Effect.die("odd"))),
      ),
      true,
    )
    expect(partly).toMatchObject({ found: 4, repaired: 1, repairable: 0 })
    expect(isClean(partly)).toBe(false)
    expect(checkText(partly)).toContain("(could not be repaired: the disk is gone)")
    expect(summaryText([whole, partly])).toBe(
      "5 findings in 2 checks, 14 looked at; 2 repaired; 3 for a person to look at.\n",
    )
  })

  it("repairs all of many findings and shows the first of them", async () => {
    let repaired = 0
    const count = 3 * maxShown
    const all = Stream.flatMap(Stream.range(1, count), () =>
      Stream.make(repairable(Effect.sync(() => void repaired++))),
    )
    const report = await run(checkOf(all), true)
    expect([repaired, report.found, report.findings.length]).toEqual([count, count, maxShown])
    expect(checkText(report)).toContain("and 200 more\n")
  })

  it("that can't go on is not clean, and the reason is shown", async () => {
    const report = await run(checkOf(Stream.concat(Stream.make(lost), Stream.fail(broken))))
    expect([report.found, report.failure, isClean(report)]).toEqual([1, "the disk is gone", false])
    expect(checkText(report)).toMatch(/not finished: the disk is gone\n$/)
    expect(summaryText([await run(checkOf(Stream.fail(broken)))])).toBe(
      "0 findings in 1 check, 7 looked at; 1 check not finished.\n",
    )
  })
})

it("a deployment without checks says so", () => expect(summaryText([])).toMatch(/^No plugin/))

it.each([
  [true, ["\rfiles: 1,000 looked at, 2 found\u001b[K", "\r\u001b[K"]],
  [false, ["files: 1,000 looked at, 2 found\n"]],
])("progress comes now and then (on a terminal: %s)", (isTTY, expected) => {
  const clock = fakeClock()
  const written: string[] = []
  const progress = makeProgress(
    { isTTY, write: (text: string | Uint8Array) => written.push(String(text)) > 0 },
    clock,
  )
  progress.report("files", 1, 0)
  clock.advance(10_000)
  progress.report("files", 1000, 2)
  progress.report("files", 1001, 2)
  progress.clear()
  expect(written).toEqual(expected)
})
