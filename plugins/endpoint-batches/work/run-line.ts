import { Cause, Effect, Option } from "effect"
import {
  type ApiError,
  apiError,
  type CallPath,
  type Endpoint,
  isApiError,
  type Json,
  type PortError,
  type Settlement,
} from "../../../core/index.ts"
import type { BatchDeps } from "../deps.ts"
import { isBatchError, readInputLine } from "../input/input-line.ts"
import type { RawLine } from "../input/json-lines.ts"
import { lineInput } from "../preflight/model-check.ts"
import type { BatchRow } from "../tables.ts"
import type { Stop } from "./cancellation.ts"
import type { Stake } from "./hold-tracker.ts"
import type { Seat } from "./line-scheduler.ts"
import { errorLine, lineId, outputLine } from "./result-line.ts"
import { waitMs } from "./retry-policy.ts"

/** How a line ended. */
export interface LineResult {
  readonly line: number
  readonly ok: boolean
  /** As it stands in its file. */
  readonly body: string
  /** Open until it is committed; absent where nothing is held. */
  readonly settlement?: Settlement
  /** When that run began which is settled. */
  readonly begunMs?: number
}

export interface LineParts {
  readonly deps: BatchDeps
  readonly batch: BatchRow
  readonly target: Endpoint
  readonly stop: Stop
  readonly random: () => number
}

/** What a line has while it runs. */
export type Standing = Stake & Pick<Seat, "resting">

/** How long a line waits before it looks for the nth time for money that others hold. */
const heldMs = (looks: number): number => Math.min(1_000 * 2 ** looks, 30_000)

type Answer = Effect.Success<ReturnType<CallPath["runUnsettled"]>> & { readonly begunMs: number }

const internal = (deps: BatchDeps, batch: BatchRow, cause: Cause.Cause<unknown>): ApiError => {
  const failure = Option.getOrUndefined(Cause.findErrorOption(cause))
  if (isApiError(failure)) return failure
  deps.log.error("batch.line_failed", "a line of a batch failed", {
    batch: batch.id,
    cause: Cause.pretty(cause),
  })
  return apiError("internal_error")
}

/** What went wrong, as a client may see it. */
const sealed = <A>(
  { deps, batch }: LineParts,
  work: Effect.Effect<A, ApiError | PortError>,
): Effect.Effect<A, ApiError> =>
  Effect.catchCause(work, (cause) =>
    Cause.hasInterruptsOnly(cause) ? Effect.interrupt : Effect.fail(internal(deps, batch, cause)),
  )

const once = (parts: LineParts, requestId: string, body: Json): Effect.Effect<Answer, ApiError> => {
  const { deps, batch, target } = parts
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
  return sealed(parts, run)
}

/** After a refusal for want of money: whether only what is held stands in the way, by real-time calls, other keys, other processes. That ends. Also where it can't be told: the next try says why. */
const isOnlyHeld = (parts: LineParts, requestId: string, body: Json): Effect.Effect<boolean> => {
  const { deps, batch, target } = parts
  const look = Effect.gen(function* () {
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
  return Effect.catchTag(sealed(parts, look), "ApiError", () => Effect.succeed(true))
}

/** Whether there may be money now, known when it is time to look; undefined: the batch was stopped meanwhile. */
const waitForMoney = (
  parts: LineParts,
  requestId: string,
  body: Json,
  standing: Standing,
  looks: number,
): Effect.Effect<boolean | undefined> =>
  Effect.gen(function* () {
    const isMore = yield* standing.resting(parts.stop.during(standing.more))
    if (Option.isNone(isMore)) return undefined
    if (isMore.value) return true
    if (!(yield* isOnlyHeld(parts, requestId, body))) return false
    return (yield* standing.resting(parts.stop.toldWithin(heldMs(looks)))) ? undefined : true
  })

/** Again and again while it makes sense; undefined: the batch was stopped meanwhile. */
const patiently = (
  parts: LineParts,
  requestId: string,
  body: Json,
  standing: Standing,
): Effect.Effect<Answer | undefined, ApiError> => {
  const attempt = (tries: number, looks = 0): Effect.Effect<Answer | undefined, ApiError> =>
    Effect.catchTag(standing.hold(once(parts, requestId, body)), "ApiError", (error) => {
      if (error.code === "insufficient_quota")
        return Effect.flatMap(waitForMoney(parts, requestId, body, standing, looks), (isMore) => {
          if (isMore === undefined) return Effect.succeed(undefined)
          return isMore ? attempt(tries, looks + 1) : Effect.fail(error)
        })
      const ms = waitMs(error, tries, parts.random)
      if (ms === undefined) return Effect.fail(error)
      return Effect.flatMap(standing.resting(parts.stop.toldWithin(ms)), (isTold) =>
        isTold ? Effect.succeed(undefined) : attempt(tries + 1),
      )
    })
  return attempt(1)
}

/** Runs a line as if its key had called. Undefined: it was not run. */
export const runLine = (
  parts: LineParts,
  raw: RawLine,
  standing: Standing,
): Effect.Effect<LineResult | undefined> =>
  Effect.suspend(() => {
    const { line } = raw
    const id = lineId(parts.batch.id, line)
    const read = readInputLine(raw, parts.target.path)
    // pre-flight has read it, so the settings have changed since
    if (isBatchError(read))
      return Effect.succeed({
        line,
        ok: false,
        body: errorLine(
          id,
          null,
          apiError("invalid_request_error", read.message, { param: read.param ?? undefined }),
        ),
      })
    const { customId, body } = read
    return patiently(parts, id, body, standing).pipe(
      Effect.map((answer): LineResult | undefined => {
        if (!answer) return undefined
        const { reply, settlement, begunMs } = answer
        return {
          line,
          ok: true,
          body: outputLine(id, customId, reply.status, "json" in reply ? reply.json : null),
          settlement,
          begunMs,
        }
      }),
      Effect.catchTag("ApiError", (error) =>
        Effect.succeed({ line, ok: false, body: errorLine(id, customId, error) }),
      ),
      // an answer that is no JSON; its hold ends by itself
      Effect.catchDefect((defect) =>
        Effect.succeed({
          line,
          ok: false,
          body: errorLine(id, customId, internal(parts.deps, parts.batch, Cause.die(defect))),
        }),
      ),
    )
  })
