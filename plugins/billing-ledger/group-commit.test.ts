import { Effect, Exit } from "effect"
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest"
import { PortError } from "../../core/index.ts"
import { makeGroupCommit, makeTurns } from "./group-commit.ts"

const options = { maxItems: 3, maxInFlight: 1, maxWaiting: 5 }
const sqlError = (code: string) =>
  new PortError({
    port: "database",
    message: code,
    cause: Object.assign(new Error(code), { code }),
  })
const many = (n: number) => Array.from({ length: n }, (_, i) => i)
const turn = Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))

describe("group commit", () => {
  it("sends what arrives in one turn together, and what waits meanwhile, in order", async () => {
    const groups: (readonly number[])[] = []
    const group = makeGroupCommit({
      ...options,
      maxWaiting: 10,
      run: (items: readonly number[]) =>
        Effect.sync(() => groups.push(items)).pipe(
          Effect.andThen(turn),
          Effect.as(items.map((n) => n * 10)),
        ),
    })
    const answers = await Effect.runPromise(
      Effect.forEach(many(6), group.submit, { concurrency: "unbounded" }),
    )
    expect(answers).toEqual([0, 10, 20, 30, 40, 50])
    expect(groups).toEqual([
      [0, 1, 2],
      [3, 4, 5],
    ])
    await Effect.runPromise(group.idle)
  })

  it("takes items without a fiber", async () => {
    const group = makeGroupCommit({
      ...options,
      maxWaiting: 1,
      run: (items: readonly number[]) => Effect.as(turn, items),
    })
    const exits: Exit.Exit<number, PortError>[] = []
    for (const n of many(2)) group.add(n, (exit) => exits.push(exit))
    expect(exits.map(Exit.isSuccess)).toEqual([false])
    await Effect.runPromise(group.idle)
    expect(exits.map(Exit.isSuccess)).toEqual([false, true])
  })

  it("keeps at most so many statements in flight", async () => {
    let now = 0
    let most = 0
    const run = (items: readonly number[]) =>
      Effect.sync(() => {
        most = Math.max(most, ++now)
      }).pipe(Effect.andThen(turn), Effect.ensuring(Effect.sync(() => now--)), Effect.as(items))
    const group = makeGroupCommit({ maxItems: 1, maxInFlight: 2, maxWaiting: 100, run })
    await Effect.runPromise(Effect.forEach(many(20), group.submit, { concurrency: "unbounded" }))
    expect(most).toBe(2)
  })

  it("refuses when too many wait", async () => {
    const group = makeGroupCommit({
      ...options,
      run: (items: readonly number[]) => Effect.as(turn, items),
    })
    const exits = await Effect.runPromise(
      Effect.forEach(many(8), (n) => Effect.exit(group.submit(n)), { concurrency: "unbounded" }),
    )
    expect(exits.map(Exit.isSuccess)).toEqual([true, true, true, true, true, false, false, false])
  })

  it("sends the items of a group one by one when one of them is bad", async () => {
    const run = (items: readonly number[]) =>
      Effect.andThen(
        turn,
        items.includes(2) ? Effect.fail(sqlError("23505")) : Effect.succeed(items),
      )
    const group = makeGroupCommit({ ...options, run })
    const exits = await Effect.runPromise(
      Effect.forEach(many(5), (n) => Effect.exit(group.submit(n)), { concurrency: "unbounded" }),
    )
    expect(exits.map(Exit.isSuccess)).toEqual([true, true, false, true, true])
  })

  it("fails the whole group when the database is gone, and goes on afterwards", async () => {
    let down = true
    const run = (items: readonly number[]) =>
      Effect.andThen(turn, down ? Effect.fail(sqlError("ECONNREFUSED")) : Effect.succeed(items))
    const group = makeGroupCommit({ ...options, run })
    const exits = await Effect.runPromise(
      Effect.forEach(many(4), (n) => Effect.exit(group.submit(n)), { concurrency: "unbounded" }),
    )
    expect(exits.some(Exit.isSuccess)).toBe(false)
    down = false
    expect(await Effect.runPromise(group.submit(1))).toBe(1)
  })

  it("survives a statement that throws", async () => {
    const group = makeGroupCommit({
      ...options,
      run: (): Effect.Effect<readonly number[], PortError> => {
        throw new Error("bug")
      },
    })
    expect(Exit.hasDies(await Effect.runPromiseExit(group.submit(1)))).toBe(true)
    expect(Exit.hasDies(await Effect.runPromiseExit(group.submit(2)))).toBe(true)
  })
})

describe("items that may linger", () => {
  const openLingering = (isPatient = false) => {
    const groups: (readonly number[])[] = []
    const run = (items: readonly number[]) =>
      Effect.sync(() => groups.push(items)).pipe(Effect.andThen(turn), Effect.as(items))
    return {
      groups,
      group: makeGroupCommit({
        ...options,
        run,
        linger: { ms: 25, isPatient, allows: (n: number) => n >= 10 },
      }),
    }
  }
  const submitted = (
    group: ReturnType<typeof openLingering>["group"],
    ...items: readonly number[]
  ) => Promise.all(items.map((n) => Effect.runPromise(group.submit(n))))

  beforeEach(() => void vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] }))
  afterEach(() => void vi.useRealTimers())

  it("wait for others, but not longer than the limit", async () => {
    const { groups, group } = openLingering()
    const answers = submitted(group, 10, 11)
    await vi.advanceTimersByTimeAsync(24)
    expect(groups).toEqual([])
    let isIdle = false
    const idle = Effect.runPromise(group.idle).then(() => {
      isIdle = true
    })
    await Effect.runPromise(turn)
    expect(isIdle).toBe(false)
    await vi.advanceTimersByTimeAsync(1)
    expect(await answers).toEqual([10, 11])
    expect(groups).toEqual([[10, 11]])
    await idle
  })

  it("go out with one that may not, and when they fill a statement", async () => {
    const { groups, group } = openLingering()
    expect(await submitted(group, 10, 1)).toEqual([10, 1])
    expect(await submitted(group, 10, 11, 12)).toEqual([10, 11, 12])
    expect(groups).toEqual([
      [10, 1],
      [10, 11, 12],
    ])
    expect(vi.getTimerCount()).toBe(0)
  })

  it.each([
    [false, "go out when a statement ends", [[1], [10], [11]]],
    [true, "wait for their time though a statement ends, if they are patient", [[1], [10, 11]]],
  ])("patient: %s: %s", async (isPatient, _, expected) => {
    const { groups, group } = openLingering(isPatient)
    const first = submitted(group, 1)
    await Effect.runPromise(turn)
    const later = submitted(group, 10)
    expect(await first).toEqual([1])
    await Effect.runPromise(turn)
    const last = submitted(group, 11)
    await vi.advanceTimersByTimeAsync(25)
    expect(await Promise.all([later, last])).toEqual([[10], [11]])
    expect(groups).toEqual(expected)
    await Effect.runPromise(group.idle)
  })

  it("go out after a statement, if they are patient, with what waits for it or when asked to", async () => {
    const { groups, group } = openLingering(true)
    const answers = [submitted(group, 1)]
    await Effect.runPromise(turn)
    answers.push(submitted(group, 10), submitted(group, 2))
    await Promise.all(answers)
    answers.push(submitted(group, 3))
    await Effect.runPromise(turn)
    answers.push(submitted(group, 11))
    group.hurry()
    await Promise.all(answers)
    expect(groups).toEqual([[1], [10, 2], [3], [11]])
    expect(vi.getTimerCount()).toBe(0)
  })
})

describe("groups that lock the same rows", () => {
  /** Two groups whose statements end at `endNext`; an item is its row. */
  const pair = (maxItems = 3, lingerMs?: number) => {
    const turns = makeTurns()
    const sent: string[] = []
    const ends: (() => void)[] = []
    const group = (name: string) =>
      makeGroupCommit({
        maxItems,
        maxInFlight: 1,
        maxWaiting: 100,
        locks: { turns, of: (row: string) => (row === "" ? undefined : row) },
        ...(lingerMs && { linger: { ms: lingerMs, allows: (row: string) => row === "slow" } }),
        run: (rows: readonly string[]) =>
          Effect.callback<readonly string[]>((resume) => {
            sent.push(`${name} ${rows.join("+")}`)
            ends.push(() => resume(Effect.succeed(rows)))
          }),
      })
    const endNext = async () => {
      ends.shift()?.()
      await Effect.runPromise(turn)
    }
    return { admit: group("admit"), settle: group("settle"), sent, endNext }
  }
  const submit = (group: { submit(row: string): Effect.Effect<unknown, PortError> }, row: string) =>
    Effect.runPromise(group.submit(row))

  it("keeps an item back while the other has its row, and sends the rest", async () => {
    const { admit, settle, sent, endNext } = pair()
    const all = [submit(admit, "a"), ...["a", "c", "a"].map((row) => submit(settle, row))]
    await Effect.runPromise(turn)
    expect(sent).toEqual(["admit a", "settle c"])
    await endNext()
    expect(sent, "its own statement is still in flight").toHaveLength(2)
    await endNext()
    expect(sent.at(-1)).toBe("settle a+a")
    await endNext()
    expect(await Promise.all(all)).toEqual(["a", "a", "c", "a"])
  })

  it("takes turns on one row", async () => {
    const { admit, settle, sent, endNext } = pair(1)
    const all = [1, 2].flatMap(() => [submit(admit, "a"), submit(settle, "a")])
    await Effect.runPromise(turn)
    for (let n = 0; n < 4; n++) await endNext()
    expect(sent).toEqual(["admit a", "settle a", "admit a", "settle a"])
    await Promise.all(all)
  })

  it("never waits with an item that locks nothing known", async () => {
    const { admit, settle, sent, endNext } = pair()
    const all = [submit(admit, "a"), submit(settle, "")]
    await Effect.runPromise(turn)
    expect(sent).toEqual(["admit a", "settle "])
    await endNext()
    await endNext()
    await Promise.all(all)
  })

  it("lets what lingers do so when the other's statement ends", async () => {
    const { admit, settle, sent, endNext } = pair(3, 60_000)
    const all = [submit(admit, "a"), submit(settle, "slow")]
    await Effect.runPromise(turn)
    await endNext()
    expect(sent).toEqual(["admit a"])
    all.push(submit(settle, "b"))
    await Effect.runPromise(turn)
    expect(sent.at(-1)).toBe("settle slow+b")
    await endNext()
    await Promise.all(all)
  })

  it("is not idle while an item waits for its row", async () => {
    const { admit, settle, endNext } = pair()
    const all = [submit(admit, "a"), submit(settle, "a")]
    let isIdle = false
    const idle = Effect.runPromise(settle.idle).then(() => {
      isIdle = true
    })
    await Effect.runPromise(turn)
    expect(isIdle).toBe(false)
    await endNext()
    expect(isIdle).toBe(false)
    await endNext()
    await idle
    await Promise.all(all)
  })
})
