import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Cause, Effect, Exit, Schema } from "effect"
import { afterEach, beforeEach } from "vitest"
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
import type { BatchFileJob, BatchFileSums } from "../run-file/job.ts"
import { BatchFileRefused } from "../run-file/refused.ts"
import { makeBatchRunner } from "../run-file/runner.ts"

type Body = { readonly model?: string; readonly n: number; readonly pad?: string }
export type Answering = (call: Call<Body>) => Effect.Effect<Json, ApiError>

export const model = "svc-lyt"

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

export const echo: Answering = ({ body }) => Effect.succeed({ n: body.n })
export const failsOn =
  (...numbers: readonly number[]): Answering =>
  (call) =>
    numbers.includes(call.body.n)
      ? Effect.fail(apiError("content_policy_violation", "No.", { param: "n" }))
      : echo(call)

export const line = (n: number, more: object = {}) =>
  JSON.stringify({
    custom_id: `line ${n}`,
    method: "POST",
    url: "/v1/test",
    body: { model, n },
    ...more,
  })
/** A folder for each test, with a runner on a fake model. */
export const useRunFile = () => {
  let folder: string
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "rakit-run-file-"))
  })
  afterEach(() => rmSync(folder, { recursive: true, force: true }))

  const prepare = (
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
  const path = (name = "") => join(folder, name)
  return { prepare, write, read, rows, path }
}
