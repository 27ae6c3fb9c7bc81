import { Effect, Option, Stream } from "effect"
import {
  type ApiError,
  type Json,
  noUsage,
  PortError,
  type StorageError,
  type StoredFile,
  statusOf,
  type Usage,
  type UsageByModel,
} from "../../../core/index.ts"
import type { BatchDeps } from "../deps.ts"
import { isBatchError, readInputLine } from "../input/input-line.ts"
import { jsonLines } from "../input/json-lines.ts"
import type { Faults } from "../preflight/faults.ts"
import { lineInput } from "../preflight/model-check.ts"
import type { LinePosition, Sample } from "../preflight/sample.ts"
import type { BatchError } from "../tables.ts"
import { type BatchRequest, noSuchFile } from "./create-request.ts"

/** An API error about a body as an error of its line. */
export const lineFault = ({ code, message, param }: ApiError, line: number): BatchError => ({
  code,
  message: param !== undefined && message.startsWith(`${param}:`) ? `body.${message}` : message,
  line,
  param: param === undefined ? "body" : `body.${param}`,
})

const rereadFailure = (error: StorageError): ApiError | PortError => {
  if (error._tag === "BlobMissing") return noSuchFile()
  return error._tag === "PortError"
    ? error
    : new PortError({ port: "storage", message: `the input can't be read again: ${error._tag}` })
}

const bodyAt = (
  deps: BatchDeps,
  file: StoredFile,
  path: string,
  { line, offset, end }: LinePosition,
): Effect.Effect<Json, ApiError | PortError> => {
  const bytes = Stream.mapError(deps.files.read(file, { from: offset, to: end - 1 }), rereadFailure)
  const found = Stream.runHead(
    jsonLines(bytes, { maxLineBytes: deps.limits.maxLineBytes, from: { line, offset } }),
  )
  return Effect.flatMap(found, (raw) => {
    const read = Option.isSome(raw) ? readInputLine(raw.value, path) : undefined
    return read && !isBatchError(read)
      ? Effect.succeed(read.body)
      : Effect.fail(
          new PortError({
            port: "storage",
            message: `line ${line} of the input reads otherwise now`,
          }),
        )
  })
}

const addUp = (sum: UsageByModel, bound: UsageByModel): UsageByModel => {
  const all = { ...sum }
  for (const [model, usage] of Object.entries(bound)) {
    const before = all[model] ?? noUsage
    all[model] = Object.fromEntries(
      Object.entries(usage).map(([what, n]) => [what, n + before[what as keyof Usage]]),
    ) as Record<keyof Usage, number>
  }
  return all
}

export interface Measured {
  readonly bound: UsageByModel
  readonly costMicros: bigint
}

/**
 * Sums up the bounds of the sampled lines. A line that would be refused costs nothing, and is a
 * fault; fails where the model is busy or down.
 */
export const measure = (
  deps: BatchDeps,
  file: StoredFile,
  { target, caller, callId }: BatchRequest,
  sample: Sample,
  faults: Faults,
): Effect.Effect<Measured, ApiError | PortError> =>
  Effect.gen(function* () {
    let sum: Measured = { bound: {}, costMicros: 0n }
    for (const position of sample.positions) {
      const body = yield* bodyAt(deps, file, target.path, position)
      const one = yield* deps.callPath.check(target, lineInput(deps, caller, callId, body)).pipe(
        Effect.catch((error) => {
          if (statusOf(error) >= 500 || statusOf(error) === 429) return Effect.fail(error)
          faults.add(lineFault(error, position.line))
          return Effect.succeed(undefined)
        }),
      )
      if (one)
        sum = { bound: addUp(sum.bound, one.bound), costMicros: sum.costMicros + one.costMicros }
    }
    return sum
  })

/** Extrapolates from the sample to all lines, rounding up. */
export const scaleUp = (
  { bound, costMicros }: Measured,
  lines: number,
  sampled: number,
): Measured => {
  if (sampled === 0) return { bound, costMicros }
  const scaled = (usage: Usage) =>
    Object.fromEntries(
      Object.entries(usage).map(([what, n]) => [what, Math.ceil((n * lines) / sampled)]),
    ) as Record<keyof Usage, number>
  return {
    bound: Object.fromEntries(
      Object.entries(bound).map(([model, usage]) => [model, scaled(usage)]),
    ),
    costMicros: (costMicros * BigInt(lines) + BigInt(sampled) - 1n) / BigInt(sampled),
  }
}
