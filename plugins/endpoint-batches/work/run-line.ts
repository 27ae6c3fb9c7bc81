import { Cause, Effect, Option } from "effect"
import {
  type ApiError,
  apiError,
  type CallPath,
  type Endpoint,
  isApiError,
  type Json,
  type PortError,
  portFailure,
  type Settlement,
} from "../../../core/index.ts"
import type { BatchDeps } from "../deps.ts"
import { isBatchError, readInputLine } from "../input/input-line.ts"
import type { RawLine } from "../input/json-lines.ts"
import { lineInput } from "../preflight/model-check.ts"
import type { BatchRow } from "../tables.ts"
import { modelOf } from "./batch-metrics.ts"
import type { Cancellation } from "./cancellation.ts"
import type { Hold } from "./hold-tracker.ts"
import type { Permit } from "./line-scheduler.ts"
import { errorLine, lineId, outputLine } from "./result-line.ts"
import { moneyDelayMs, retryDelayMs } from "./retry-policy.ts"

/** How a line ended. */
export interface LineResult {
  readonly line: number
  readonly ok: boolean
  /** The line of its output or error file. */
  readonly body: string
  readonly model?: string | undefined
  /** Open until it is committed; absent where nothing is held. */
  readonly settlement?: Settlement
  /** When the run began that is settled. */
  readonly begunMs?: number
}

export interface LineDeps {
  readonly deps: BatchDeps
  readonly batch: BatchRow
  readonly target: Endpoint
  readonly cancellation: Cancellation
  readonly random: () => number
}

/** What a running line does with its hold and its permit; their owner releases them. */
export interface LineAccess extends Pick<Hold, "attempt">, Pick<Permit, "resting"> {
  /** Commits what is answered, and waits as `freed` of the hold does. */
  readonly moneyFreed: Effect.Effect<boolean>
}

/** A line that is being run. */
interface Attempts extends LineDeps {
  readonly requestId: string
  readonly body: Json
  readonly access: LineAccess
}

type Answer = Effect.Success<ReturnType<CallPath["runUnsettled"]>> & { readonly begunMs: number }

const internal = (
  { deps, batch }: LineDeps,
  cause: Cause.Cause<ApiError | PortError>,
): ApiError => {
  const failure = Option.getOrUndefined(Cause.findErrorOption(cause))
  if (isApiError(failure)) return failure
  if (failure?.why) return portFailure(failure)
  deps.log.error("batch.line_failed", "a line of a batch failed", {
    batch: batch.id,
    cause: Cause.pretty(cause),
  })
  return apiError("internal_error")
}

/** Logs what a client must not see, and fails with an internal error instead. */
const masked = <A>(
  line: LineDeps,
  work: Effect.Effect<A, ApiError | PortError>,
): Effect.Effect<A, ApiError> =>
  Effect.catchCause(work, (cause) =>
    Cause.hasInterruptsOnly(cause) ? Effect.interrupt : Effect.fail(internal(line, cause)),
  )

const runOnce = (line: Attempts): Effect.Effect<Answer, ApiError> => {
  const { deps, batch, target, requestId, body } = line
  const run = Effect.gen(function* () {
    const begunMs = deps.clock.nowMs()
    const caller = yield* deps.identity.resume(batch.key_id)
    return {
      ...(yield* deps.callPath.runUnsettled(target, {
        ...lineInput(deps, caller, requestId, body),
        parent: batch.id,
      })),
      begunMs,
    }
  })
  return masked(line, run)
}

/**
 * After a refusal for want of money: whether balance and cap would cover the line if nothing were
 * held, by real-time calls, other keys or
 * other processes. Such holds end. True also where that can't be found out: the next try tells.
 */
const isOnlyHeld = (line: Attempts): Effect.Effect<boolean> => {
  const { deps, batch, target, requestId, body } = line
  const check = Effect.gen(function* () {
    const { balanceMicros } = yield* deps.billing.balance(batch.account)
    const caller = yield* deps.identity.resume(batch.key_id)
    const { costMicros } = yield* deps.callPath.check(
      target,
      lineInput(deps, caller, requestId, body),
    )
    const cap = caller.limits.monthlyCapMicros
    if (costMicros > balanceMicros || cap === 0n) return costMicros <= balanceMicros
    const spent = yield* deps.billing.spentThisMonth([batch.key_id])
    return (spent.get(batch.key_id) ?? 0n) + costMicros <= cap
  })
  return Effect.catchTag(masked(line, check), "ApiError", () => Effect.succeed(true))
}

/**
 * Waits until there may be money, and returns true; false: there will be none. Undefined: the batch
 * was cancelled meanwhile.
 */
const waitForMoney = (line: Attempts, checks: number): Effect.Effect<boolean | undefined> =>
  Effect.gen(function* () {
    const { cancellation, access } = line
    const isFreed = yield* access.resting(cancellation.during(access.moneyFreed))
    if (Option.isNone(isFreed)) return undefined
    if (isFreed.value) return true
    if (!(yield* isOnlyHeld(line))) return false
    const waited = access.resting(cancellation.cancelledWithin(moneyDelayMs(checks)))
    return (yield* waited) ? undefined : true
  })

/**
 * Runs the line until it succeeds, or fails for good. Undefined: the batch was cancelled meanwhile.
 */
const withRetries = (line: Attempts): Effect.Effect<Answer | undefined, ApiError> => {
  const { cancellation, access, random } = line
  const attempt = (tries: number, checks = 0): Effect.Effect<Answer | undefined, ApiError> =>
    Effect.catchTag(access.attempt(runOnce(line)), "ApiError", (error) => {
      if (error.code === "insufficient_quota")
        return Effect.flatMap(waitForMoney(line, checks), (isMoney) => {
          if (isMoney === undefined) return Effect.succeed(undefined)
          return isMoney ? attempt(tries, checks + 1) : Effect.fail(error)
        })
      const ms = retryDelayMs(error, tries, random)
      if (ms === undefined) return Effect.fail(error)
      return Effect.flatMap(access.resting(cancellation.cancelledWithin(ms)), (isCancelled) =>
        isCancelled ? Effect.succeed(undefined) : attempt(tries + 1),
      )
    })
  return attempt(1)
}

/** Runs a line as if its key had called. Undefined: it was not run. */
export const runLine = (
  deps: LineDeps,
  raw: RawLine,
  access: LineAccess,
): Effect.Effect<LineResult | undefined> =>
  Effect.suspend(() => {
    const { line } = raw
    const id = lineId(deps.batch.id, line)
    let model: string | undefined
    const failed = (customId: string | null, error: ApiError): LineResult => ({
      line,
      ok: false,
      body: errorLine(id, customId, error),
      model,
    })
    const read = readInputLine(raw, deps.target.path)
    // pre-flight has accepted it, so the settings have changed since
    if (isBatchError(read)) {
      const param = read.param ?? undefined
      return Effect.succeed(
        failed(null, apiError("invalid_request_error", read.message, { param })),
      )
    }
    const { customId, body } = read
    model = modelOf(deps.deps, body)
    return withRetries({ ...deps, requestId: id, body, access }).pipe(
      Effect.map((answer): LineResult | undefined => {
        if (!answer) return undefined
        const { reply, settlement, begunMs } = answer
        return {
          line,
          ok: true,
          body: outputLine(id, customId, reply.status, "json" in reply ? reply.json : null),
          model,
          settlement,
          begunMs,
        }
      }),
      Effect.catchTag("ApiError", (error) => Effect.succeed(failed(customId, error))),
      // as an answer that is no JSON; the ledger ends its hold by itself
      Effect.catchDefect((defect) =>
        Effect.succeed(failed(customId, internal(deps, Cause.die(defect)))),
      ),
    )
  })
