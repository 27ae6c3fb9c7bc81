import { Effect, Fiber } from "effect"
import { array, assert, asyncProperty, constantFrom, integer, record } from "fast-check"
import { describe, expect, it } from "vitest"
import { makeLineScheduler, type Permit } from "./line-scheduler.ts"

/** A waiting or admitted line. */
const acquire = (scheduler: ReturnType<typeof makeLineScheduler>, tenant: string, bytes = 0) => {
  const one = {
    tenant,
    bytes,
    permit: undefined as Permit | undefined,
    fiber: undefined as Fiber.Fiber<void> | undefined,
  }
  one.fiber = Effect.runFork(
    Effect.map(scheduler.acquire(tenant, bytes), (permit) => {
      one.permit = permit
    }),
  )
  return one
}
type Line = ReturnType<typeof acquire>

/** Long enough for fibers to notice what happened. */
const settled = async () => {
  for (let turn = 0; turn < 4; turn++) await new Promise<void>((resolve) => setImmediate(resolve))
}
const inside = (lines: readonly Line[], tenant: string) =>
  lines.filter((line) => line.tenant === tenant && line.permit).length

describe("the line scheduler", () => {
  it("gives a tenant that comes late its share as lines end", async () => {
    const scheduler = makeLineScheduler(8, 2 ** 30)
    const lines = Array.from({ length: 20 }, () => acquire(scheduler, "a"))
    lines.push(...Array.from({ length: 20 }, () => acquire(scheduler, "b")))
    await settled()
    expect([inside(lines, "a"), inside(lines, "b")]).toEqual([8, 0])
    for (let n = 0; n < 4; n++) {
      lines
        .splice(
          lines.findIndex(({ tenant, permit }) => tenant === "a" && permit),
          1,
        )[0]!
        .permit!.release()
      await settled()
    }
    expect([inside(lines, "a"), inside(lines, "b")]).toEqual([4, 4])
  })

  it("once full admits the next lines together, for as long as slots are free", async () => {
    const scheduler = makeLineScheduler(8, 2 ** 30)
    const lines = Array.from({ length: 12 }, () => acquire(scheduler, "a"))
    await settled()
    const ends = async (n: number) => {
      lines[n]!.permit!.release()
      await settled()
      return inside(lines, "a")
    }
    expect([await ends(0), await ends(1)]).toEqual([8, 10])
    expect([await ends(2), await ends(3)]).toEqual([10, 12])
    lines.push(acquire(scheduler, "a"))
    await settled()
    expect(inside(lines, "a")).toBe(12)
    expect([await ends(4), await ends(5)]).toEqual([12, 13])
    lines.push(acquire(scheduler, "a"))
    await settled()
    expect(inside(lines, "a")).toBe(14)
  })

  it("lends the slots of lines that rest to other tenants", async () => {
    const scheduler = makeLineScheduler(4, 2 ** 30)
    const lines = Array.from({ length: 6 }, () => acquire(scheduler, "a"))
    await settled()
    const resting = lines
      .slice(0, 4)
      .map(({ permit }) => Effect.runFork(permit!.resting(Effect.never)))
    lines.push(...Array.from({ length: 6 }, () => acquire(scheduler, "b")))
    await settled()
    expect([inside(lines, "a"), inside(lines, "b")]).toEqual([4, 4])
    for (const fiber of resting) await Effect.runPromise(Fiber.interrupt(fiber))
    const leave = async (tenant: string) => {
      const at = lines.findIndex((line) => line.tenant === tenant && line.permit)
      lines.splice(at, 1)[0]!.permit!.release()
      await settled()
      return [inside(lines, "a"), inside(lines, "b")]
    }
    // eight run in four slots: no line is admitted until fewer do
    expect([await leave("b"), await leave("b"), await leave("b"), await leave("b")].at(-1)).toEqual(
      [4, 0],
    )
    expect(await leave("a")).toEqual([3, 1])
  })

  it("lends the memory of lines that rest, too, and admits no more of their tenant where they keep much", async () => {
    const scheduler = makeLineScheduler(8, 40_000)
    const lines = Array.from({ length: 4 }, () => acquire(scheduler, "a", 9_000))
    const other = acquire(scheduler, "b", 30_000)
    await settled()
    expect([inside(lines, "a"), other.permit !== undefined]).toEqual([3, false])
    const resting = lines
      .slice(0, 3)
      .map(({ permit }) => Effect.runFork(permit!.resting(Effect.never)))
    await settled()
    expect([inside(lines, "a"), other.permit !== undefined]).toEqual([3, true])
    for (const fiber of resting) await Effect.runPromise(Fiber.interrupt(fiber))
    const late = acquire(scheduler, "c", 1)
    await settled()
    expect(late.permit).toBeUndefined()
    other.permit!.release()
    await settled()
    expect([inside(lines, "a"), late.permit !== undefined]).toEqual([3, true])
    for (const { permit } of lines.slice(0, 3)) permit!.release()
    await settled()
    expect(lines[3]!.permit).toBeDefined()
  })

  it("admits a line larger than all its memory alone, and no line overtakes it", async () => {
    const scheduler = makeLineScheduler(8, 10_000)
    const [small, large, late] = [
      acquire(scheduler, "a", 1),
      acquire(scheduler, "b", 1_000_000),
      acquire(scheduler, "c", 1),
    ]
    await settled()
    expect([small, large, late].map(({ permit }) => permit !== undefined)).toEqual([
      true,
      false,
      false,
    ])
    small.permit!.release()
    await settled()
    expect([large, late].map(({ permit }) => permit !== undefined)).toEqual([true, false])
    // its answer is small, and frees the other memory
    large.permit!.answered(10)
    await settled()
    expect(late.permit).toBeDefined()
  })

  it("under any arrivals, ends and interruptions: never too many, never too much, no line forgotten", async () => {
    const [slots, memory] = [5, 50_000]
    const step = record({
      act: constantFrom("enter", "enter", "ended", "leave", "interrupt"),
      tenant: constantFrom("a", "b", "c"),
      pick: integer({ min: 0, max: 100 }),
      bytes: integer({ min: 0, max: 30_000 }),
    })
    await assert(
      asyncProperty(array(step, { maxLength: 60 }), async (steps) => {
        const scheduler = makeLineScheduler(slots, memory)
        let lines: Line[] = []
        const kept: Permit[] = []
        for (const { act, tenant, pick, bytes } of steps) {
          const admitted = lines.filter(({ permit }) => permit)
          const line = admitted[pick % Math.max(1, admitted.length)]
          if (act === "enter") lines.push(acquire(scheduler, tenant, bytes))
          else if (act === "interrupt") {
            const waiting = lines.filter(({ permit }) => !permit)
            const gone = waiting[pick % Math.max(1, waiting.length)]
            if (gone) await Effect.runPromise(Fiber.interrupt(gone.fiber!))
            lines = lines.filter((one) => one !== gone)
          } else if (line) {
            if (act === "ended") kept.push(line.permit!)
            if (act === "ended") line.permit!.answered(0)
            else line.permit!.release()
            lines = lines.filter((one) => one !== line)
          }
          await settled()
          const now = lines.filter(({ permit }) => permit)
          expect(now.length).toBeLessThanOrEqual(slots)
          const used = now.reduce((sum, one) => sum + one.bytes + 1_024, kept.length * 1_024)
          expect(now.length <= 1 || used <= memory).toBe(true)
          if (kept.length > 20) for (const permit of kept.splice(0)) permit.release()
        }
        // waiting lines are admitted when the others end
        for (const permit of kept) permit.release()
        while (lines.length > 0) {
          await settled()
          const now = lines.filter(({ permit }) => permit)
          expect(now.length).toBeGreaterThan(0)
          for (const { permit } of now) permit!.release()
          lines = lines.filter((line) => !now.includes(line))
        }
      }),
      { numRuns: 150 },
    )
  })

  it("keeps tenants that all have enough to do within one line of each other, whatever ends when", async () => {
    await assert(
      asyncProperty(
        array(integer({ min: 0, max: 1_000 }), { minLength: 40, maxLength: 80 }),
        async (picks) => {
          const scheduler = makeLineScheduler(7, 2 ** 30)
          const lines = ["a", "b", "c"].flatMap((tenant) =>
            Array.from({ length: 40 }, () => acquire(scheduler, tenant)),
          )
          await settled()
          const left = new Set(lines)
          let turns = 0
          for (const pick of picks) {
            const now = [...left].filter(({ permit }) => permit)
            const line = now[pick % now.length]!
            left.delete(line)
            line.permit!.release()
            await settled()
            turns += 1
            const counts = ["a", "b", "c"].map((tenant) => inside([...left], tenant))
            const isEnough = ["a", "b", "c"].every((tenant) =>
              [...left].some((line) => line.tenant === tenant && !line.permit),
            )
            if (turns > 14 && isEnough)
              expect(Math.max(...counts) - Math.min(...counts)).toBeLessThanOrEqual(1)
          }
        },
      ),
      // ending always the first line makes one tenant run out of lines
      { numRuns: 30, examples: [[new Array(80).fill(0)]] },
    )
  })
})
