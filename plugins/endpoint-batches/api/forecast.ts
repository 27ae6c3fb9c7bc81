import { Effect, Semaphore } from "effect"
import {
  type ApiError,
  apiError,
  decodeBody,
  type Endpoint,
  type Forecast,
  type Json,
  type PortError,
  type StoredFile,
} from "../../../core/index.ts"
import type { BatchDeps } from "../deps.ts"
import type { Faults } from "../preflight/faults.ts"
import { makeModelCheck } from "../preflight/model-check.ts"
import { Sample } from "../preflight/sample.ts"
import { scan } from "../preflight/scan.ts"
import type { BatchError } from "../tables.ts"
import { measuredRate } from "./batch-store.ts"
import { type BatchRequest, inputOf, isPayable } from "./create-request.ts"
import { lineFault, measure, scaleUp } from "./estimate.ts"

/** Each reads a file of up to 100 MB: more at once would only be slower. */
const forecastsAtOnce = 2

const noStream = () =>
  apiError("unsupported_parameter", "A batch line can't be streamed.", { param: "stream" })

/** Returns what the endpoint, or its schema, refuses in a body. */
const shapeFault = (
  target: Endpoint,
  body: Json,
  line: number,
): Effect.Effect<BatchError | undefined> => {
  const schema = target.body
  const refusal = target.refuses?.(body)
  if (refusal) return Effect.succeed(lineFault(refusal, line))
  return typeof schema === "string"
    ? Effect.succeed(undefined)
    : decodeBody(schema, body).pipe(
        // decoding drops it where the endpoint has no such field
        Effect.map((decoded) =>
          (decoded as { readonly stream?: unknown }).stream === true
            ? lineFault(noStream(), line)
            : undefined,
        ),
        Effect.catch((error) => Effect.succeed(lineFault(error, line))),
      )
}

interface Reading {
  readonly lines: number
  readonly faults: Faults
  /** Sample of the lines that may run. */
  readonly sample: Sample
  /** Pre-flight would refuse the input. */
  readonly isRefused: boolean
  /** Lines of unknown models, which share the error of the first one. */
  readonly unlisted: number
}

const readAll = (
  deps: BatchDeps,
  file: StoredFile,
  { target, caller, callId }: BatchRequest,
): Effect.Effect<Reading, PortError> =>
  Effect.gen(function* () {
    const models = makeModelCheck(deps, target, caller, callId)
    const sample = new Sample()
    let misshapen = 0
    const { lines, faults } = yield* scan(deps, file, target.path, ({ body }, raw) =>
      Effect.gen(function* () {
        if (yield* models.check(body, raw.line)) return undefined
        const wrong = yield* shapeFault(target, body, raw.line)
        if (wrong) misshapen += 1
        else sample.add(raw)
        return wrong
      }),
    )
    const isRefused = faults.count > misshapen
    const errors = models.errors()
    for (const error of errors) faults.add(error)
    return { lines, faults, sample, isRefused, unlisted: models.lines() - errors.length }
  })

const forecastOf = (
  deps: BatchDeps,
  request: BatchRequest,
): Effect.Effect<Forecast, ApiError | PortError> =>
  Effect.gen(function* () {
    const file = yield* inputOf(deps, request)
    const { lines, faults, sample, isRefused, unlisted } = yield* readAll(deps, file, request)
    const sampled = sample.positions.length
    const { bound, costMicros } = scaleUp(
      yield* measure(deps, file, request, sample, faults),
      sample.seen,
      sampled,
    )
    const rate = yield* measuredRate(deps, request.caller.tenant, request.target.path)
    const isPaid = yield* isPayable(deps, request).pipe(
      Effect.as(true),
      Effect.catchTag("ApiError", () => Effect.succeed(false)),
    )
    const more = {
      lines,
      invalid_lines: lines === 0 ? 0 : faults.count + unlisted,
      sampled_lines: sampled,
      errors: faults.list(),
      estimated_seconds:
        rate === undefined ? null : Math.ceil(sample.seen / rate + deps.limits.pollMs / 1000),
    }
    return { bound, costMicros, wouldSucceed: !isRefused && isPaid, more }
  })

/**
 * Errors, cost and duration of a batch: checks the shape of every line, and counts tokens on a
 * sample.
 */
export const makeForecaster = () => {
  const permits = Semaphore.makeUnsafe(forecastsAtOnce)
  return (deps: BatchDeps, request: BatchRequest): Effect.Effect<Forecast, ApiError | PortError> =>
    permits.withPermits(1)(forecastOf(deps, request))
}
