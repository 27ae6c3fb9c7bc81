import { Effect } from "effect"
import { afterEach, beforeAll, describe, expect, it, vi } from "vitest"
import { apiError } from "../../../core/index.ts"
import { fakeStorage } from "../../../testing/index.ts"
import { hasEnded, isRunning, makeDoor, patient, startWorker } from "../testing/start-worker.ts"
import { inputLine, lineMicros } from "../testing/target.ts"
import {
  numbersOf,
  openWorkFixture,
  type WorkFixture,
  type WorkFixtureOptions,
} from "../testing/work-fixture.ts"

// the server of the test databases may have to start first
beforeAll(async () => (await openWorkFixture()).close(), 120_000)

let fixture: WorkFixture
let stops: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const stop of stops) await stop()
  stops = []
  await fixture?.close()
})

const open = async (options: WorkFixtureOptions = {}) => {
  fixture = await openWorkFixture(options)
  return fixture
}

const work = (): (() => Promise<void>) => {
  const stop = startWorker(fixture)
  stops.push(stop)
  return stop
}
const ended = (id: string) => hasEnded(fixture, id)
const running = (id: string, atLeast = 0) => isRunning(fixture, id, atLeast)

const numbers = (count: number) => Array.from({ length: count }, (_, n) => n)

describe("a batch", () => {
  it("gives each line once, in order, at half price, and one event", async () => {
    await open()
    const id = await fixture.create("a", 100)
    work()
    const row = await ended(id)
    expect(row).toMatchObject({
      status: "completed",
      total: 100,
      completed: 100,
      failed: 0,
      error_file_id: null,
      cost_micros: 100n * lineMicros,
    })
    const lines = await fixture.linesOf(row.output_file_id)
    expect(numbersOf(lines)).toEqual(numbers(100))
    expect(lines[7]).toEqual({
      id: expect.stringMatching(/^batch_req_[0-9a-f]{24}$/),
      custom_id: "line-7",
      response: { status_code: 200, body: { n: 7 } },
      error: null,
    })
    expect((await fixture.events()).map(({ event, data }) => [event, data.id])).toEqual([
      ["batch.completed", id],
    ])
    expect((await fixture.calls()).every(({ state }) => state === "settled")).toBe(true)
    expect([
      await fixture.rowsOf("batches_line"),
      await fixture.rowsOf("batches_part"),
      await fixture.parts(),
    ]).toEqual([0, 0, []])
    expect(
      (await fixture.files.rows()).filter(({ purpose }) => purpose === "batch_output"),
    ).toMatchObject([{ filename: `${id}_output.jsonl` }])
  })

  it("puts failed lines into the error file, and waits for a busy engine", async () => {
    const tries = new Map<number, number>()
    await open({
      run: (n) =>
        Effect.suspend(() => {
          tries.set(n, (tries.get(n) ?? 0) + 1)
          if (n % 5 === 0) return Effect.fail(apiError("context_length_exceeded"))
          if (n % 7 === 0 && tries.get(n) === 1)
            return Effect.fail(apiError("backend_busy", undefined, { retryAfterMs: 1 }))
          return Effect.succeed({ n })
        }),
    })
    const id = await fixture.create("a", 30)
    work()
    const row = await ended(id)
    expect(row).toMatchObject({
      status: "completed",
      total: 30,
      completed: 24,
      failed: 6,
      cost_micros: 24n * lineMicros,
    })
    expect(numbersOf(await fixture.linesOf(row.output_file_id))).toEqual(
      numbers(30).filter((n) => n % 5 !== 0),
    )
    const errors = await fixture.linesOf(row.error_file_id)
    expect(numbersOf(errors)).toEqual(numbers(30).filter((n) => n % 5 === 0))
    expect(errors[0]).toMatchObject({
      response: null,
      error: {
        code: "context_length_exceeded",
        type: "invalid_request_error",
        param: null,
        message: expect.any(String),
      },
    })
  })

  it("without a balance, or of a suspended account, fails its lines and completes", async () => {
    const { broke, identity } = await open()
    const [poor, barred] = [await fixture.create("poor", 3), await fixture.create("barred", 3)]
    broke.add("poor")
    identity.add({ key: "barred", suspended: true })
    work()
    for (const [id, code] of [
      [poor, "insufficient_quota"],
      [barred, "account_suspended"],
    ] as const) {
      const row = await ended(id)
      expect(row).toMatchObject({ status: "completed", completed: 0, failed: 3, cost_micros: 0n })
      expect((await fixture.linesOf(row.error_file_id)).map(({ error }) => error?.code)).toEqual([
        code,
        code,
        code,
      ])
      expect(await fixture.linesOf(row.output_file_id)).toEqual([])
      expect(row.output_file_id).not.toBeNull()
    }
  })

  it("with an input that is wrong fails before its first line", async () => {
    await open()
    const id = await fixture.create("a", '{"custom_id":"x"}\nnope\n')
    work()
    const row = await ended(id)
    expect(row).toMatchObject({
      status: "failed",
      total: 0,
      output_file_id: null,
      error_file_id: null,
      in_progress_at: null,
    })
    expect(row.errors?.map(({ line }) => line)).toEqual([1, 2])
    expect(await fixture.events()).toMatchObject([
      { event: "batch.failed", data: { id, errors: { object: "list" } } },
    ])
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
    const id = await fixture.create("a", 500)
    work()
    await running(id, 8)
    await vi.waitFor(() => expect(begun).toHaveLength(16), patient)
    await fixture.cancel(id)
    // the worker has noticed when it lets no more in: its slots are full until then anyway
    await vi.waitFor(
      async () =>
        expect((await fixture.batch(id)).lease_until?.getTime() ?? 0).toBeGreaterThan(
          (await fixture.batch(id)).ended_at!.getTime() + fixture.deps.limits.leaseMs,
        ),
      patient,
    )
    door.open()
    await vi.waitFor(
      async () =>
        expect((await fixture.calls()).filter(({ state }) => state === "settled")).toHaveLength(16),
      patient,
    )
    expect(begun).toHaveLength(16)
    await vi.waitFor(async () => expect(await fixture.rowsOf("batches_line")).toBe(0), patient)
    expect(await fixture.batch(id)).toMatchObject({
      status: "cancelled",
      completed: 8,
      cost_micros: 16n * lineMicros,
      output_file_id: null,
    })
    expect(await fixture.events()).toEqual([])
  })

  it("that is cancelled as it ends leaves nothing", async () => {
    const storage = fakeStorage()
    let id = ""
    const put: typeof storage.put = (key, body, maxBytes) =>
      Effect.tap(storage.put(key, body, maxBytes), () => Effect.promise(() => fixture.cancel(id)))
    await open({ storage: { ...storage, put } })
    id = await fixture.create("a", 10)
    work()
    expect(await ended(id)).toMatchObject({
      status: "cancelled",
      output_file_id: null,
      cost_micros: 10n * lineMicros,
    })
    await vi.waitFor(async () => expect(await fixture.rowsOf("batches_line")).toBe(0), patient)
    expect(await fixture.events()).toEqual([])
  })

  it("keeps what ran when its time is over", async () => {
    await open({
      limits: { windowMs: 900 },
      run: (n) => (n < 20 ? Effect.succeed({ n }) : Effect.fail(apiError("backend_busy"))),
    })
    const id = await fixture.create("a", 40)
    work()
    const row = await ended(id)
    expect(row).toMatchObject({
      status: "expired",
      total: 40,
      completed: 20,
      failed: 0,
      cost_micros: 20n * lineMicros,
    })
    expect(numbersOf(await fixture.linesOf(row.output_file_id))).toEqual(numbers(20))
    expect(await fixture.events()).toEqual([])
  })

  it("whose input is gone fails, and keeps what ran", async () => {
    const door = makeDoor()
    await open({ run: (n) => (n < 10 ? Effect.succeed({ n }) : Effect.as(door.pass, { n })) })
    const id = await fixture.create("a", 40)
    const stop = work()
    const { input_file_id } = await running(id, 10)
    await stop()
    await fixture.files.remove(input_file_id)
    work()
    const row = await ended(id)
    expect(row).toMatchObject({
      status: "failed",
      total: 40,
      completed: 10,
      failed: 0,
      errors: [{ code: "not_found", line: null, param: "input_file_id" }],
    })
    expect(numbersOf(await fixture.linesOf(row.output_file_id))).toEqual(numbers(10))
    expect((await fixture.events()).map(({ event }) => event)).toEqual(["batch.failed"])
  })
})

describe("large answers", () => {
  it("go through parts, with one worker or with the next, and come out in order", async () => {
    const door = makeDoor()
    const text = "x".repeat(1_200_000)
    const puts: string[] = []
    const storage = fakeStorage()
    const put: typeof storage.put = (key, body, maxBytes) =>
      Effect.tap(storage.put(key, body, maxBytes), () => Effect.sync(() => puts.push(key)))
    await open({
      storage: { ...storage, put },
      run: (n) => {
        if (n === 2) return Effect.fail(apiError("context_length_exceeded"))
        return n < 9 ? Effect.succeed({ n, text }) : Effect.as(door.pass, { n })
      },
    })
    const id = await fixture.create("a", 14)
    const stop = work()
    await running(id, 8)
    await vi.waitFor(
      async () => expect(await fixture.rowsOf("batches_part")).toBeGreaterThan(1),
      patient,
    )
    await stop()
    expect((await fixture.batch(id)).done_through).toBeGreaterThan(6)
    door.open()
    work()
    const row = await ended(id)
    expect(row).toMatchObject({ status: "completed", completed: 13, failed: 1 })
    expect(numbersOf(await fixture.linesOf(row.output_file_id))).toEqual(
      numbers(14).filter((n) => n !== 2),
    )
    expect(numbersOf(await fixture.linesOf(row.error_file_id))).toEqual([2])
    expect(puts.filter((key) => key.startsWith("batches/")).length).toBeGreaterThan(1)
    await vi.waitFor(
      async () =>
        expect([
          await fixture.rowsOf("batches_line"),
          await fixture.rowsOf("batches_part"),
          await fixture.parts(),
        ]).toEqual([0, 0, []]),
      patient,
    )
  }, 60_000)
})

describe("several", () => {
  it("of an account that has many places give one up for an account that has none", async () => {
    await open({
      limits: { batchesAtOnce: 5, linesAtOnce: 5 },
      run: (n) => (n < 0 ? Effect.succeed({ n }) : Effect.as(Effect.sleep(5), { n })),
    })
    const long = await Promise.all(
      ["a", "a", "b", "b", "c"].map((account) => fixture.create(account, 2_000)),
    )
    work()
    for (const id of long) await running(id)
    const late = await fixture.create("d", inputLine(-1))
    expect(await ended(late)).toMatchObject({ status: "completed", completed: 1 })
    const rows = await Promise.all(long.map((id) => fixture.batch(id)))
    expect(rows.map(({ status }) => status)).toEqual(long.map(() => "in_progress"))
    // the one that gave way goes on
    await vi.waitFor(
      async () =>
        expect(
          (
            await fixture.db
              .selectFrom("batches_batch")
              .select("epoch")
              .where("epoch", ">", 1)
              .execute()
          ).length,
        ).toBeGreaterThan(0),
      {
        timeout: 5_000,
      },
    )
  })

  it("of one account make room for another account", async () => {
    const door = makeDoor()
    await open({
      limits: { batchesAtOnce: 1 },
      run: (n) => (n === 1 ? Effect.as(door.pass, { n }) : Effect.succeed({ n })),
    })
    const ids = [
      await fixture.create("a", 2),
      await fixture.create("b", 2),
      await fixture.create("a", 2),
    ]
    work()
    await running(ids[0]!, 1)
    door.open()
    for (const id of ids)
      expect(await ended(id)).toMatchObject({ status: "completed", completed: 2 })
    const order = (await Promise.all(ids.map((id) => fixture.batch(id)))).map(({ ended_at }) =>
      ended_at!.getTime(),
    )
    expect(order[1]).toBeLessThanOrEqual(order[2]!)
  })

  it("workers that stop and start again and again leave nothing out and nothing twice", async () => {
    let ran = 0
    await open({
      limits: { linesAtOnce: 4 },
      run: (n) => Effect.map(Effect.sleep(1), () => ({ n, at: ran++ })),
    })
    const ids = await Promise.all(["a", "b", "c"].map((account) => fixture.create(account, 80)))
    for (let round = 0; round < 5; round++) {
      const before = ran
      const pair = [work(), work()]
      await vi.waitFor(() => expect(ran).toBeGreaterThanOrEqual(Math.min(before + 30, 240)), {
        ...patient,
        interval: 2,
      })
      await Promise.all(pair.map((stop) => stop()))
      expect((await fixture.calls()).filter(({ state }) => state === "open")).toEqual([])
    }
    work()
    for (const id of ids) {
      const row = await ended(id)
      expect(row).toMatchObject({
        status: "completed",
        completed: 80,
        cost_micros: 80n * lineMicros,
      })
      expect(numbersOf(await fixture.linesOf(row.output_file_id))).toEqual(numbers(80))
    }
    const paid = (await fixture.calls()).filter(({ state }) => state === "settled")
    expect([paid.length, new Set(paid.map(({ request_id }) => request_id)).size]).toEqual([
      240, 240,
    ])
  })
})
