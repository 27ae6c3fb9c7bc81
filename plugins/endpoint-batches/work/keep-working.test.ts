import { Deferred, Effect, Exit, Scope } from "effect"
import { afterEach, describe, expect, it, vi } from "vitest"
import { apiError } from "../../../core/index.ts"
import { keepWorking } from "./keep-working.ts"
import { lineMicros } from "./testing/target.ts"
import { numbersOf, openWorkHouse, type WorkHouse, type WorkHouseOptions } from "./testing/work-house.ts"

let house: WorkHouse
let stops: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const stop of stops) await stop()
  stops = []
  await house?.close()
})

const open = async (options: WorkHouseOptions = {}) => {
  house = await openWorkHouse(options)
  return house
}

/** A worker as a process has it; answers its orderly stop. */
const work = (): (() => Promise<void>) => {
  const scope = Scope.makeUnsafe()
  Effect.runFork(Effect.forkScoped(keepWorking(house.house)).pipe(Scope.provide(scope)))
  let stopped: Promise<void> | undefined
  const stop = () => {
    stopped ??= Effect.runPromise(Scope.close(scope, Exit.void))
    return stopped
  }
  stops.push(stop)
  return stop
}

const ended = (id: string) =>
  vi.waitFor(
    async () => {
      const row = await house.batch(id)
      expect(row.ended_at).not.toBeNull()
      return row
    },
    { timeout: 15_000, interval: 20 },
  )
const running = (id: string, atLeast = 0) =>
  vi.waitFor(
    async () => {
      const row = await house.batch(id)
      expect([row.status, row.completed >= atLeast]).toEqual(["in_progress", true])
      return row
    },
    { timeout: 15_000, interval: 5 },
  )

const numbers = (count: number) => Array.from({ length: count }, (_, n) => n)

/** Holds lines back until it is opened. */
const makeDoor = () => {
  const door = Deferred.makeUnsafe<void>()
  return { pass: Deferred.await(door), open: () => Deferred.doneUnsafe(door, Effect.void) }
}

describe("a batch", () => {
  it("gives each line once, in order, at half price, and one event", async () => {
    await open()
    const id = await house.create("a", 300)
    work()
    const row = await ended(id)
    expect(row).toMatchObject({ status: "completed", total: 300, completed: 300, failed: 0, error_file_id: null, cost_micros: 300n * lineMicros })
    const lines = await house.linesOf(row.output_file_id)
    expect(numbersOf(lines)).toEqual(numbers(300))
    expect(lines[7]).toEqual({ id: expect.stringMatching(/^batch_req_[0-9a-f]{24}$/), custom_id: "line-7", response: { status_code: 200, body: { n: 7 } }, error: null })
    expect((await house.events()).map(({ event, data }) => [event, data.id])).toEqual([["batch.completed", id]])
    expect((await house.calls()).every(({ state }) => state === "settled")).toBe(true)
    expect([await house.rowsOf("batches_line"), await house.rowsOf("batches_part"), await house.parts()]).toEqual([0, 0, []])
    expect((await house.files.rows()).filter(({ purpose }) => purpose === "batch_output")).toMatchObject([{ filename: `${id}_output.jsonl` }])
  })

  it("puts failed lines into the error file, and waits for a busy engine", async () => {
    const tries = new Map<number, number>()
    await open({
      run: (n) =>
        Effect.suspend(() => {
          tries.set(n, (tries.get(n) ?? 0) + 1)
          if (n % 5 === 0) return Effect.fail(apiError("context_length_exceeded"))
          if (n % 7 === 0 && tries.get(n) === 1) return Effect.fail(apiError("backend_busy", undefined, { retryAfterMs: 1 }))
          return Effect.succeed({ n })
        }),
    })
    const id = await house.create("a", 30)
    work()
    const row = await ended(id)
    expect(row).toMatchObject({ status: "completed", total: 30, completed: 24, failed: 6, cost_micros: 24n * lineMicros })
    expect(numbersOf(await house.linesOf(row.output_file_id))).toEqual(numbers(30).filter((n) => n % 5 !== 0))
    const errors = await house.linesOf(row.error_file_id)
    expect(numbersOf(errors)).toEqual(numbers(30).filter((n) => n % 5 === 0))
    expect(errors[0]).toMatchObject({ response: null, error: { code: "context_length_exceeded", type: "invalid_request_error", param: null, message: expect.any(String) } })
  })

  it("without a balance, or of a suspended account, fails its lines and completes", async () => {
    const { broke, identity } = await open()
    const [poor, barred] = [await house.create("poor", 3), await house.create("barred", 3)]
    broke.add("poor")
    identity.add({ key: "barred", suspended: true })
    work()
    for (const [id, code] of [
      [poor, "insufficient_quota"],
      [barred, "account_suspended"],
    ] as const) {
      const row = await ended(id)
      expect(row).toMatchObject({ status: "completed", completed: 0, failed: 3, cost_micros: 0n })
      expect((await house.linesOf(row.error_file_id)).map(({ error }) => error?.code)).toEqual([code, code, code])
      expect(await house.linesOf(row.output_file_id)).toEqual([])
      expect(row.output_file_id).not.toBeNull()
    }
  })

  it("with an input that is wrong fails before its first line", async () => {
    await open()
    const id = await house.create("a", '{"custom_id":"x"}\nnope\n')
    work()
    const row = await ended(id)
    expect(row).toMatchObject({ status: "failed", total: 0, output_file_id: null, error_file_id: null, in_progress_at: null })
    expect(row.errors?.map(({ line }) => line)).toEqual([1, 2])
    expect(await house.events()).toMatchObject([{ event: "batch.failed", data: { id, errors: { object: "list" } } }])
  })

  it("that is cancelled begins no further line; those that run are paid, and nobody gets them", async () => {
    const door = makeDoor()
    const begun: number[] = []
    await open({
      run: (n) =>
        Effect.suspend(() => {
          begun.push(n)
          return Effect.as(n < 8 ? Effect.void : door.pass, { n })
        }),
    })
    const id = await house.create("a", 500)
    work()
    await running(id, 8)
    await vi.waitFor(() => expect(begun).toHaveLength(16))
    await house.cancel(id)
    // the worker has noticed when it lets no more in: its slots are full until then anyway
    await vi.waitFor(async () => expect((await house.batch(id)).lease_until?.getTime() ?? 0).toBeGreaterThan((await house.batch(id)).ended_at!.getTime() + 300))
    door.open()
    await vi.waitFor(async () => expect((await house.calls()).filter(({ state }) => state === "settled")).toHaveLength(16), { timeout: 5_000 })
    expect(begun).toHaveLength(16)
    await vi.waitFor(async () => expect(await house.rowsOf("batches_line")).toBe(0))
    expect(await house.batch(id)).toMatchObject({ status: "cancelled", completed: 8, cost_micros: 16n * lineMicros, output_file_id: null })
    expect(await house.events()).toEqual([])
  })

  it("keeps what ran when its time is over", async () => {
    await open({ limits: { windowMs: 900 }, run: (n) => (n < 20 ? Effect.succeed({ n }) : Effect.fail(apiError("backend_busy"))) })
    const id = await house.create("a", 40)
    work()
    const row = await ended(id)
    expect(row).toMatchObject({ status: "expired", total: 40, completed: 20, failed: 0, cost_micros: 20n * lineMicros })
    expect(numbersOf(await house.linesOf(row.output_file_id))).toEqual(numbers(20))
    expect(await house.events()).toEqual([])
  })

  it("whose input is gone fails, and keeps what ran", async () => {
    const door = makeDoor()
    await open({ run: (n) => (n < 10 ? Effect.succeed({ n }) : Effect.as(door.pass, { n })) })
    const id = await house.create("a", 40)
    const stop = work()
    const { input_file_id } = await running(id, 10)
    await stop()
    await house.files.remove(input_file_id)
    work()
    const row = await ended(id)
    expect(row).toMatchObject({ status: "failed", total: 40, completed: 10, failed: 0, errors: [{ code: "not_found", line: null }] })
    expect(numbersOf(await house.linesOf(row.output_file_id))).toEqual(numbers(10))
    expect((await house.events()).map(({ event }) => event)).toEqual(["batch.failed"])
  })
})

describe("several", () => {
  it("of one account make room for another account", async () => {
    const door = makeDoor()
    await open({ limits: { batchesAtOnce: 1 }, run: (n) => (n === 1 ? Effect.as(door.pass, { n }) : Effect.succeed({ n })) })
    const ids = [await house.create("a", 2), await house.create("b", 2), await house.create("a", 2)]
    work()
    await running(ids[0]!, 1)
    door.open()
    for (const id of ids) expect(await ended(id)).toMatchObject({ status: "completed", completed: 2 })
    const order = (await Promise.all(ids.map((id) => house.batch(id)))).map(({ ended_at }) => ended_at!.getTime())
    expect(order[1]).toBeLessThanOrEqual(order[2]!)
  })

  it("workers that stop and start again and again leave nothing out and nothing twice", async () => {
    let ran = 0
    await open({ limits: { linesAtOnce: 4 }, run: (n) => Effect.map(Effect.sleep(1), () => ({ n, at: ran++ })) })
    const ids = await Promise.all(["a", "b", "c"].map((account) => house.create(account, 200)))
    for (let round = 0; round < 6; round++) {
      const before = ran
      const pair = [work(), work()]
      await vi.waitFor(() => expect(ran).toBeGreaterThanOrEqual(Math.min(before + 60, 600)), { timeout: 5_000, interval: 2 })
      await Promise.all(pair.map((stop) => stop()))
      expect((await house.calls()).filter(({ state }) => state === "open")).toEqual([])
    }
    work()
    for (const id of ids) {
      const row = await ended(id)
      expect(row).toMatchObject({ status: "completed", completed: 200, cost_micros: 200n * lineMicros })
      expect(numbersOf(await house.linesOf(row.output_file_id))).toEqual(numbers(200))
    }
    const paid = (await house.calls()).filter(({ state }) => state === "settled")
    expect([paid.length, new Set(paid.map(({ request_id }) => request_id)).size]).toEqual([600, 600])
  })
})
