import { existsSync, writeFileSync } from "node:fs"
import { Deferred, Effect, Exit, Layer, Scope } from "effect"
import { TestClock } from "effect/testing"
import { describe, expect, it } from "vitest"
import { apiError } from "../../../core/index.ts"
import { echo, failsOn, line, model, useRunFile } from "../testing/run-file-fixture.ts"
import { numbers } from "../testing/work-fixture.ts"
import type { BatchFileRefused } from "./refused.ts"

/** Lets the event loop turn so often. */
const turns = (count: number) =>
  Effect.promise(async () => {
    for (let turn = 0; turn < count; turn++) await new Promise((resolve) => setImmediate(resolve))
  })

const { prepare, write, read, rows, path } = useRunFile()

describe("a file", () => {
  it("gives successes to the one file and failures to the other, both in the order of the input, in the format of a batch", async () => {
    const { run, opened, seen } = prepare(failsOn(1, 3))
    write(...numbers(5).map((n) => line(n)))
    expect(await run()).toEqual({
      lines: 5,
      earlier: 0,
      completed: 3,
      failed: 2,
      inputTokens: 6,
      outputTokens: 3,
      costMicros: 13_500n,
    })
    expect(rows("out.jsonl").map((row) => row.custom_id)).toEqual(["line 0", "line 2", "line 4"])
    expect(rows("out.jsonl")[0]).toEqual({
      id: expect.stringMatching(/^batch_req_\w{24}$/),
      custom_id: "line 0",
      response: { status_code: 200, body: { n: 0 } },
      error: null,
    })
    expect(rows("errors.jsonl")).toEqual(
      [1, 3].map((n) => ({
        id: expect.stringMatching(/^batch_req_\w{24}$/),
        custom_id: `line ${n}`,
        response: null,
        error: {
          message: "No.",
          type: "invalid_request_error",
          code: "content_policy_violation",
          param: "n",
        },
      })),
    )
    expect(opened).toEqual([[model]])
    expect(seen.map(({ completed, failed }) => completed + failed)).toEqual(seen.map((_, at) => at))
  })

  it("makes no error file without errors, and takes the endpoint that it is given", async () => {
    const { run } = prepare()
    write(line(1, { url: "/v1/other" }))
    expect(await run({ endpoint: "/v1/other" })).toMatchObject({ completed: 1 })
    expect(existsSync(path("errors.jsonl"))).toBe(false)
  })

  it("comes out in order, whichever line ends first, with lines beyond the one that takes long", async () => {
    const first = Deferred.makeUnsafe<void>()
    let ended = 0
    const { run } = prepare((call) =>
      call.body.n === 0
        ? Effect.andThen(Deferred.await(first), echo(call))
        : Effect.tap(Effect.andThen(turns(call.body.n % 3), echo(call)), () =>
            Effect.sync(() => ++ended === 199 && Deferred.doneUnsafe(first, Exit.void)),
          ),
    )
    write(...numbers(200).map((n) => line(n)))
    expect(await run()).toMatchObject({ completed: 200 })
    expect(rows("out.jsonl").map((row) => row.response?.body.n)).toEqual(numbers(200))
  })

  it("waits for an engine that has no room, and gives up what stays broken", async () => {
    let tries = 0
    const clock = await Effect.runPromise(
      Layer.build(TestClock.layer()).pipe(Scope.provide(Scope.makeUnsafe())),
    )
    const { run, ran } = prepare((call) => {
      if (call.body.n === 0 && ++tries < 3)
        return Effect.fail(apiError("backend_busy", undefined, { retryAfterMs: 1 }))
      return call.body.n === 1 ? Effect.fail(apiError("content_policy_violation")) : echo(call)
    }, Effect.runPromiseExitWith(clock))
    write(line(0), line(1))
    let isOver = false
    const running = run().finally(() => {
      isOver = true
    })
    while (!isOver)
      await Effect.runPromiseWith(clock)(
        Effect.andThen(
          Effect.promise(() => new Promise((resolve) => setImmediate(resolve))),
          TestClock.adjust("1 second"),
        ),
      )
    expect(await running).toMatchObject({ completed: 1, failed: 1 })
    expect(ran.filter((n) => n === 0)).toHaveLength(3)
  })

  it("fails a line that its endpoint does not take, and only that", async () => {
    const { run } = prepare()
    write(line(0), line(1, { body: { n: "x" } }), line(2, { body: { model, n: 2, stream: true } }))
    expect(await run()).toMatchObject({ completed: 2, failed: 1 })
    expect(rows("errors.jsonl")).toMatchObject([
      { custom_id: "line 1", error: { code: "invalid_request_error", param: "n" } },
    ])
  })
})

it("fails a line of an unknown model, and only that", async () => {
  const { run, opened } = prepare()
  write(line(0), line(1, { body: { model: "gpt-9", n: 1 } }), line(2))
  expect(await run()).toMatchObject({ completed: 2, failed: 1 })
  expect(rows("errors.jsonl")).toMatchObject([
    { custom_id: "line 1", error: { code: "model_not_found" } },
  ])
  expect(opened).toEqual([[model]])
})

describe("before the first line runs, the file is refused", () => {
  const refusal = async (...lines: readonly string[]) => {
    const { run, ran, opened } = prepare()
    write(...lines)
    const found = await run()
    expect([ran, opened, existsSync(path("out.jsonl"))]).toEqual([[], [], false])
    return found as BatchFileRefused
  }

  it("with every line that is wrong", async () => {
    const { message, faults } = await refusal(
      `\ufeff${line(0)}`,
      "nonsense",
      "",
      line(0),
      line(4, { url: "/v1/other" }),
      line(5, { body: { model: "gpt-9", n: 1 } }),
    )
    expect(message).toContain("4 lines can't run")
    expect(faults?.map((fault) => [fault.line, fault.code, fault.param])).toEqual([
      [2, "invalid_json", null],
      [4, "duplicate_custom_id", "custom_id"],
      [5, "mismatched_endpoint", "url"],
      [6, "model_not_found", "body.model"],
    ])
  })

  it.each([
    ["that is empty", [""], "holds no line"],
    ["without an endpoint", ["nonsense"], "no line names an endpoint"],
    [
      "with an endpoint that is not here",
      [line(0, { url: "/v1/files" })],
      "'/v1/files' is no endpoint that takes batches here. There are: /v1/test, /v1/other.",
    ],
  ])("%s", async (_, lines, message) =>
    expect((await refusal(...lines)).message).toContain(message),
  )

  it("of which no line can be read names each, with what is wrong", async () => {
    const { faults } = await refusal(
      "x".repeat(9 * 2 ** 20),
      "nonsense",
      "[]",
      JSON.stringify({ custom_id: "a", method: "POST", body: {} }),
    )
    expect(faults?.map((fault) => [fault.line, fault.code])).toEqual([
      [1, "line_too_long"],
      [2, "invalid_json"],
      [3, "invalid_request_error"],
    ])
  })

  it("must have a name, and its results too", async () => {
    const { run } = prepare()
    write(line(0))
    for (const paths of [{ input: "-" }, { input: "" }, { output: "-" }, { errors: "-" }])
      expect(await run(paths)).toMatchObject({
        message: expect.stringContaining("must be files with a name"),
      })
    for (const resume of [false, true]) {
      expect(await run({ output: path(), resume })).toMatchObject({
        message: expect.stringContaining("is a folder"),
      })
      expect(await run({ output: "/dev/full", resume })).toMatchObject({
        message: expect.stringContaining("no regular file"),
      })
    }
  })

  it("that is not there, or whose results are", async () => {
    const { run } = prepare()
    expect(await run({ input: path("nowhere.jsonl") })).toMatchObject({
      message: expect.stringContaining("there is no such file"),
    })
    expect(await run({ input: path() })).toMatchObject({
      message: expect.stringContaining("is a folder"),
    })
    expect(await run({ input: "/dev/null" })).toMatchObject({
      message: "/dev/null is no regular file; lines and results must lie in files.",
    })
    write(line(0))
    writeFileSync(path("out.jsonl"), "mine\n")
    expect(await run()).toMatchObject({
      message: expect.stringContaining("out.jsonl is there already. Go on with it (--resume)"),
    })
    expect(await run({ resume: true })).toMatchObject({
      message: expect.stringContaining("holds no results of a batch (line 1)"),
    })
    expect(await run({ output: path("in.jsonl"), resume: true })).toMatchObject({
      message: "Input, output and errors must be three files.",
    })
    expect(await run({ output: path("no/out.jsonl") })).toMatchObject({
      message: expect.stringContaining("can't be written: there is no such file or folder"),
    })
    expect(read("out.jsonl")).toBe("mine\n")
  })
})
