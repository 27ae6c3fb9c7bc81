import { Cause, Deferred, Effect, Exit, Fiber } from "effect"
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { runs as runsOf } from "../testing/property.ts"
import { makeSingleFlight } from "./single-flight.ts"

interface Run {
  readonly key: string
  readonly id: number
  readonly end: Deferred.Deferred<string, string>
  state: "running" | "interrupted" | "ended"
  /** Lets a run that was interrupted end. */
  readonly cleanUp: Deferred.Deferred<void>
}

/** Runs end when the test says so, interrupted ones only after `cleanUp`. */
const setUp = () => {
  const flights = makeSingleFlight<string, string>()
  const runs: Run[] = []
  const work = (key: string) =>
    Effect.suspend(() => {
      const run: Run = {
        key,
        id: runs.length,
        end: Deferred.makeUnsafe(),
        state: "running",
        cleanUp: Deferred.makeUnsafe(),
      }
      runs.push(run)
      return Deferred.await(run.end).pipe(
        Effect.onInterrupt(() => {
          run.state = "interrupted"
          return Deferred.await(run.cleanUp)
        }),
        Effect.onExit(() =>
          Effect.sync(() => {
            run.state = "ended"
          }),
        ),
      )
    })
  const join = (key = "a") => Effect.runFork(flights.run(key, work(key)))
  const exitOf = (fiber: Fiber.Fiber<string, string>) => Effect.runPromise(Fiber.await(fiber))
  const end = (index: number, exit: Exit.Exit<string, string>) =>
    Deferred.doneUnsafe(runs[index]!.end, exit)
  return {
    flights,
    runs,
    join,
    exitOf,
    end,
    cleanUp: (run: Run) => Deferred.doneUnsafe(run.cleanUp, Exit.void),
  }
}

/** Lets every fiber go as far as it can. */
const settle = () => new Promise(setImmediate)

describe("a single flight", () => {
  it("gives callers with the same key one run, and other keys their own", async () => {
    const { flights, runs, join, exitOf, end } = setUp()
    const callers = [join("a"), join("a"), join("b")]
    expect(runs.map(({ key }) => key)).toEqual(["a", "b"])
    expect(flights.size).toBe(2)
    end(0, Exit.succeed("of a"))
    end(1, Exit.succeed("of b"))
    expect(await Promise.all(callers.map(exitOf))).toEqual(
      ["of a", "of a", "of b"].map((value) => Exit.succeed(value)),
    )
    expect(flights.size).toBe(0)
  })

  it.each([
    ["failure", Exit.fail("down")],
    ["defect", Exit.die(new Error("bug"))],
  ])("gives a %s to all callers of the run, and does not keep it", async (_, exit) => {
    const { runs, join, exitOf, end } = setUp()
    const callers = [join(), join()]
    end(0, exit)
    expect(await Promise.all(callers.map(exitOf))).toEqual([exit, exit])
    const later = join()
    end(1, Exit.succeed("up"))
    expect(await exitOf(later)).toEqual(Exit.succeed("up"))
    expect(runs).toHaveLength(2)
  })

  it("keeps nothing of work that ends at once", async () => {
    const flights = makeSingleFlight<number, never>()
    for (const value of [1, 2])
      expect(await Effect.runPromise(flights.run("a", Effect.succeed(value)))).toBe(value)
    expect(flights.size).toBe(0)
  })

  it("joins a caller that comes while the work begins", async () => {
    const flights = makeSingleFlight<number, never>()
    let inner: Promise<number> | undefined
    let begun = 0
    const work: Effect.Effect<number> = Effect.suspend(() => {
      inner ??= Effect.runPromise(flights.run("a", work))
      return Effect.succeed(++begun)
    })
    expect(await Effect.runPromise(flights.run("a", work))).toBe(1)
    expect(await inner).toBe(1)
  })

  it("shares a run among callers whose fibers yield at any operation", async () => {
    for (let before = 2_030; before < 2_060; before++) {
      const { flights, runs } = setUp()
      const work = Effect.suspend(() => {
        const run = { id: runs.length }
        runs.push(run as Run)
        return Effect.as(Effect.sleep("1 millis"), String(run.id))
      })
      const busy = Effect.forEach(Array(before), () => Effect.void, { discard: true })
      const caller = Effect.andThen(busy, flights.run("a", work))
      const results = await Effect.runPromise(
        Effect.all([caller, caller, caller], { concurrency: "unbounded" }),
      )
      expect(results).toEqual(["0", "0", "0"])
    }
  })

  it("goes on when a caller leaves, even the one that began it", async () => {
    const { runs, join, exitOf, end } = setUp()
    const [first, second] = [join(), join()]
    await Effect.runPromise(Fiber.interrupt(first))
    expect(runs[0]?.state).toBe("running")
    end(0, Exit.succeed("done"))
    expect(await exitOf(second)).toEqual(Exit.succeed("done"))
  })

  it("ends after its last caller, who waits for that, as those do who come meanwhile", async () => {
    const { flights, runs, join, exitOf, end, cleanUp } = setUp()
    const [first, second] = [join(), join()]
    let left = false
    const leaving = [first, second].map((fiber) => Effect.runPromise(Fiber.interrupt(fiber)))
    Promise.all(leaving).then(() => {
      left = true
    })
    const [third, fourth, impatient] = [join(), join(), join()]
    await settle()
    expect(runs.map(({ state }) => state)).toEqual(["interrupted"])
    expect(left).toBe(false)
    // those who wait for the end may leave at any time
    await Effect.runPromise(Fiber.interrupt(impatient))
    cleanUp(runs[0]!)
    await Promise.all(leaving)
    await settle()
    expect(runs.map(({ state }) => state)).toEqual(["ended", "running"])
    end(1, Exit.succeed("anew"))
    expect(await Promise.all([third, fourth].map(exitOf))).toEqual(
      Array(2).fill(Exit.succeed("anew")),
    )
    expect(flights.size).toBe(0)
  })

  it("begins anew after forget, and lets what is in flight go on for its callers", async () => {
    const { flights, runs, join, exitOf, end } = setUp()
    const before = join()
    flights.forget()
    const after = join()
    expect(flights.size).toBe(2)
    end(0, Exit.succeed("old"))
    expect(await exitOf(before)).toEqual(Exit.succeed("old"))
    // the end of the forgotten run does not take away the new one
    const later = join()
    expect(runs).toHaveLength(2)
    end(1, Exit.succeed("new"))
    expect(await Promise.all([after, later].map(exitOf))).toEqual(
      Array(2).fill(Exit.succeed("new")),
    )
  })
})

const steps = fc.array(
  fc.record({
    what: fc.constantFrom("join", "join", "leave", "end", "clean up", "let go on"),
    which: fc.nat(7),
    key: fc.constantFrom("a", "b"),
    exit: fc.constantFrom<"succeed" | "fail" | "die">("succeed", "fail", "die"),
  }),
  { minLength: 1, maxLength: 60 },
)

it("has at most one run of a key, gives callers a run of their time, and leaves nothing, in any order", async () => {
  const check = async (schedule: typeof steps extends fc.Arbitrary<infer S> ? S : never) => {
    const { flights, runs, join, exitOf, cleanUp } = setUp()
    const callers: { key: string; fiber: ReturnType<typeof join>; left: boolean; since: number }[] =
      []
    /** The step at which a run ended. */
    const endedAt = new Map<number, number>()
    const endRun = (run: Run, how: "succeed" | "fail" | "die", at: number) => {
      if (!Deferred.doneUnsafe(run.end, Exit[how](String(run.id)))) return
      if (run.state !== "interrupted") endedAt.set(run.id, at)
    }
    const isUnderWay = (run: Run) => run.state !== "ended"
    const checkNow = () => {
      for (const key of ["a", "b"]) {
        const ofKey = runs.filter((run) => run.key === key && isUnderWay(run))
        expect(ofKey.length).toBeLessThan(2)
        const isWanted = callers.some(
          (caller) => caller.key === key && !caller.left && !caller.fiber.pollUnsafe(),
        )
        if (ofKey[0]?.state === "running") expect(isWanted).toBe(true)
      }
      expect(flights.size).toBe(runs.filter(isUnderWay).length)
    }
    for (const [at, { what, which, key, exit }] of schedule.entries()) {
      const open = runs.filter(isUnderWay)
      if (what === "join") callers.push({ key, fiber: join(key), left: false, since: at })
      const caller = callers[which % callers.length]
      const run = open[which % open.length]
      if (what === "leave" && caller) {
        caller.left = true
        Effect.runFork(Fiber.interrupt(caller.fiber))
      }
      if (what === "end" && run) endRun(run, exit, at)
      if (what === "clean up" && run) cleanUp(run)
      if (what === "let go on") await settle()
      checkNow()
    }
    // everything that is under way, and what begins then, may end
    while (runs.some(isUnderWay)) {
      for (const run of runs.filter(isUnderWay)) {
        cleanUp(run)
        endRun(run, "succeed", schedule.length)
      }
      await settle()
      checkNow()
    }
    for (const { key, fiber, left, since } of callers) {
      const exit = await exitOf(fiber)
      const reason = Exit.isFailure(exit) ? Cause.squash(exit.cause) : exit.value
      const isInterrupted = Exit.isFailure(exit) && Cause.hasInterruptsOnly(exit.cause)
      // only who leaves is interrupted: nobody else's leaving is seen
      if (isInterrupted) expect(left).toBe(true)
      else {
        const run = runs[Number(reason)]
        expect(run?.key).toBe(key)
        expect(endedAt.get(run!.id)).toBeGreaterThanOrEqual(since)
      }
    }
    expect(flights.size).toBe(0)
  }
  await fc.assert(fc.asyncProperty(steps, check), { numRuns: runsOf(1_000) })
})
