import { existsSync, mkdtempSync, readFileSync, rmSync, truncateSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Cause, Deferred, Effect, Exit, Layer, Schema, Scope } from "effect"
import { TestClock } from "effect/testing"
import fc from "fast-check"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import {
  type ApiError,
  apiError,
  type Call,
  defineEndpoint,
  type Endpoint,
  type Json,
  usageOf,
} from "../../../core/index.ts"
import { callPathFixture, fakeChatModel } from "../../../testing/index.ts"
import { BatchFileRefused } from "./refused.ts"
import { type BatchFileJob, type BatchFileSums, makeBatchRunner } from "./runner.ts"

type Body = { readonly model?: string; readonly n: number; readonly pad?: string }
type Answering = (call: Call<Body>) => Effect.Effect<Json, ApiError>

/** Of the event loop. */
const turns = (count: number) =>
  Effect.promise(async () => {
    for (let turn = 0; turn < count; turn++) await new Promise((resolve) => setImmediate(resolve))
  })

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "rakit-run-file-"))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

const model = "svc-lyt"

/** `/v1/test` uses two tokens of input and one of output. */
const makeTarget = (answering: Answering, ran: number[], path = "/v1/test"): Endpoint =>
  defineEndpoint<Body>({
    id: "test",
    summary: "",
    method: "POST",
    path,
    access: "key",
    body: Schema.Struct({
      model: Schema.optionalKey(Schema.String),
      n: Schema.Int,
      pad: Schema.optionalKey(Schema.String),
    }),
    maxBodyBytes: 1000,
    batchable: true,
    plan: (call) => {
      if (call.body.model !== undefined && call.body.model !== model)
        return Effect.fail(apiError("model_not_found"))
      const usage = usageOf({ inputTokens: 2, outputTokens: 1 })
      const run = Effect.suspend(() => {
        ran.push(call.body.n)
        call.context.meter(model, usage)
        return Effect.map(answering(call), (json) => ({ status: 200, json }))
      })
      return Effect.succeed({ bound: { [model]: usage }, run })
    },
  })

const echo: Answering = ({ body }) => Effect.succeed({ n: body.n })
const failsOn =
  (...numbers: readonly number[]): Answering =>
  (call) =>
    numbers.includes(call.body.n)
      ? Effect.fail(apiError("content_policy_violation", "No.", { param: "n" }))
      : echo(call)

const stage = (
  answering: Answering = echo,
  runExit: typeof Effect.runPromiseExit = Effect.runPromiseExit,
) => {
  const ran: number[] = []
  const fixture = callPathFixture([fakeChatModel({ entry: { id: model } })], 10n ** 15n)
  const target = makeTarget(answering, ran)
  const opened: (readonly string[])[] = []
  const seen: BatchFileSums[] = []
  const runner = makeBatchRunner({
    callPath: fixture.path,
    catalogue: fixture.catalogue,
    clock: fixture.clock,
    random: () => 0,
    targets: new Map([target, makeTarget(echo, ran, "/v1/other")].map((one) => [one.path, one])),
  })
  const run = async (more: Partial<BatchFileJob<never>> = {}) => {
    const job = {
      input: join(folder, "in.jsonl"),
      output: join(folder, "out.jsonl"),
      errors: join(folder, "errors.jsonl"),
      resume: false,
      linesAtOnce: 4,
      ...more,
    }
    const open = (models: readonly string[]) => Effect.sync(() => void opened.push(models))
    const exit = await runExit(
      Effect.scoped(runner<never>({ open, onProgress: (sums) => seen.push(sums), ...job })),
    )
    if (Exit.isSuccess(exit)) return exit.value
    const error = Cause.squash(exit.cause)
    if (error instanceof BatchFileRefused) return error
    throw error
  }
  return { run, ran, opened, seen }
}

const line = (n: number, more: object = {}) =>
  JSON.stringify({
    custom_id: `line ${n}`,
    method: "POST",
    url: "/v1/test",
    body: { model, n },
    ...more,
  })
const write = (...lines: readonly string[]) =>
  writeFileSync(join(folder, "in.jsonl"), lines.join("\n"))
const read = (name: string) => readFileSync(join(folder, name), "utf8")
const rows = (name: string) =>
  read(name)
    .trimEnd()
    .split("\n")
    .map(
      (text) =>
        JSON.parse(text) as {
          readonly custom_id: string
          readonly response: { readonly body: { readonly n: number } } | null
        },
    )
const numbers = (count: number) => Array.from({ length: count }, (_, n) => n)

describe("a file", () => {
  it("gives successes to the one file and failures to the other, both in the order of the input, in the format of a batch", async () => {
    const { run, opened, seen } = stage(failsOn(1, 3))
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

  it("makes no error file without errors, and takes the endpoint that it is told", async () => {
    const { run } = stage()
    write(line(1, { url: "/v1/other" }))
    expect(await run({ endpoint: "/v1/other" })).toMatchObject({ completed: 1 })
    expect(existsSync(join(folder, "errors.jsonl"))).toBe(false)
  })

  it("comes out in order, whichever line ends first, with lines beyond the one that takes long", async () => {
    const first = Deferred.makeUnsafe<void>()
    let ended = 0
    const { run } = stage((call) =>
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
    const { run, ran } = stage((call) => {
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
    const { run } = stage()
    write(line(0), line(1, { body: { n: "x" } }), line(2, { body: { model, n: 2, stream: true } }))
    expect(await run()).toMatchObject({ completed: 2, failed: 1 })
    expect(rows("errors.jsonl")).toMatchObject([
      { custom_id: "line 1", error: { code: "invalid_request_error", param: "n" } },
    ])
  })
})

describe("before the first line runs, the file is refused", () => {
  const refusal = async (...lines: readonly string[]) => {
    const { run, ran, opened } = stage()
    write(...lines)
    const found = await run()
    expect([ran, opened, existsSync(join(folder, "out.jsonl"))]).toEqual([[], [], false])
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
    const { run } = stage()
    write(line(0))
    for (const paths of [{ input: "-" }, { input: "" }, { output: "-" }, { errors: "-" }])
      expect(await run(paths)).toMatchObject({
        message: expect.stringContaining("must be files with a name"),
      })
    for (const resume of [false, true]) {
      expect(await run({ output: folder, resume })).toMatchObject({
        message: expect.stringContaining("is a folder"),
      })
      expect(await run({ output: "/dev/full", resume })).toMatchObject({
        message: expect.stringContaining("no regular file"),
      })
    }
  })

  it("that is not there, or whose results are", async () => {
    const { run } = stage()
    expect(await run({ input: join(folder, "nowhere.jsonl") })).toMatchObject({
      message: expect.stringContaining("there is no such file"),
    })
    expect(await run({ input: folder })).toMatchObject({
      message: expect.stringContaining("is a folder"),
    })
    expect(await run({ input: "/dev/null" })).toMatchObject({
      message: "/dev/null is no regular file; lines and results must lie in files.",
    })
    write(line(0))
    writeFileSync(join(folder, "out.jsonl"), "mine\n")
    expect(await run()).toMatchObject({
      message: expect.stringContaining("out.jsonl is there already. Go on with it (--resume)"),
    })
    expect(await run({ resume: true })).toMatchObject({
      message: expect.stringContaining("holds no results of a batch (line 1)"),
    })
    expect(await run({ output: join(folder, "in.jsonl"), resume: true })).toMatchObject({
      message: "Input, output and errors must be three files.",
    })
    expect(await run({ output: join(folder, "no", "out.jsonl") })).toMatchObject({
      message: expect.stringContaining("can't be written: there is no such file or folder"),
    })
    expect(read("out.jsonl")).toBe("mine\n")
  })
})

describe("an interrupted run", () => {
  it("goes on wherever its two files were cut, and the result is that of one run; no line runs that was done", async () => {
    const failing = [3, 4, 9, 15]
    write(
      ...numbers(20).map((n) => line(n, { custom_id: n === 7 ? 'odd "id" \\ é\n' : `line ${n}` })),
    )
    await stage(failsOn(...failing)).run()
    const whole = [read("out.jsonl"), read("errors.jsonl")] as const
    await fc.assert(
      fc.asyncProperty(
        fc.nat(whole[0].length),
        fc.nat(whole[1].length),
        async (outputBytes, errorBytes) => {
          for (const [at, name] of ["out.jsonl", "errors.jsonl"].entries())
            writeFileSync(join(folder, name), whole[at] ?? "")
          truncateSync(join(folder, "out.jsonl"), outputBytes)
          truncateSync(join(folder, "errors.jsonl"), errorBytes)
          const kept = [
            read("out.jsonl").split("\n").length - 1,
            read("errors.jsonl").split("\n").length - 1,
          ] as const
          const { run, ran } = stage(failsOn(...failing))
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
    writeFileSync(join(folder, "out.jsonl"), '{"id":"batch_')
    expect(await stage().run({ resume: true })).toMatchObject({ earlier: 0, completed: 2 })
    const { run, ran, opened } = stage()
    expect(await run({ resume: true })).toMatchObject({ earlier: 2, completed: 2 })
    expect([ran, opened]).toEqual([[], []])
  })

  it("is not mixed with the results of another input", async () => {
    write(line(0), line(1))
    await stage().run()
    const before = read("out.jsonl")
    write(line(5), line(0))
    expect(await stage().run({ resume: true })).toMatchObject({
      message: expect.stringContaining("not made from this input"),
    })
    expect(read("out.jsonl")).toBe(before)
  })
})
