import { Effect } from "effect"
import { describe, expect, it } from "vitest"
import { apiError } from "../../../core/index.ts"
import { makeDoor, useWorkers } from "../testing/start-worker.ts"
import { lineMicros } from "../testing/target.ts"
import { numbers, numbersOf } from "../testing/work-fixture.ts"

const { open, work, ended, running } = useWorkers()

describe("a batch", () => {
  it("gives each line once, in order, at half price, and one event", async () => {
    const fixture = await open()
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
    const fixture = await open({
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
    const fixture = await open()
    const { broke, identity } = fixture
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
    const fixture = await open()
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

  it("keeps what ran when its time is over", async () => {
    const fixture = await open({
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
    const fixture = await open({
      run: (n) => (n < 10 ? Effect.succeed({ n }) : Effect.as(door.pass, { n })),
    })
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
