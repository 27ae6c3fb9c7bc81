import { Cause, Effect, Option } from "effect"
import { type ApiError, apiError, type CallPath, type Endpoint, isApiError, type Settlement } from "../../../core/index.ts"
import type { BatchHouse } from "../house.ts"
import { isBatchError, readInputLine } from "../input/input-line.ts"
import type { RawLine } from "../input/json-lines.ts"
import type { BatchRow } from "../tables.ts"
import { errorLine, lineId, outputLine } from "./line-wire.ts"
import { waitMs } from "./patience.ts"
import type { Stake } from "./purse.ts"
import type { Stop } from "./stop.ts"

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
  readonly house: BatchHouse
  readonly batch: BatchRow
  readonly target: Endpoint
  readonly stop: Stop
  readonly random: () => number
}

type Answer = Effect.Success<ReturnType<CallPath["runUnsettled"]>> & { readonly begunMs: number }

const internal = (house: BatchHouse, batch: BatchRow, cause: Cause.Cause<unknown>): ApiError => {
  const failure = Option.getOrUndefined(Cause.findErrorOption(cause))
  if (isApiError(failure)) return failure
  house.log.error("a line of a batch failed", { batch: batch.id, cause: Cause.pretty(cause) })
  return apiError("internal_error")
}

const once = ({ house, batch, target }: LineParts, requestId: string, body: unknown): Effect.Effect<Answer, ApiError> =>
  Effect.gen(function* () {
    const begunMs = house.clock.nowMs()
    const caller = yield* house.identity.resume(batch.key_id)
    const input = { caller, body, requestId, priority: "batch" as const, priceFactor: house.catalogue.batchPriceFactor, parent: batch.id }
    return { ...(yield* house.callPath.runUnsettled(target, input)), begunMs }
  }).pipe(Effect.catchCause((cause) => (Cause.hasInterruptsOnly(cause) ? Effect.interrupt : Effect.fail(internal(house, batch, cause)))))

/** Again and again while it makes sense; undefined: the batch was stopped meanwhile. */
const patiently = (parts: LineParts, requestId: string, body: unknown, stake: Stake): Effect.Effect<Answer | undefined, ApiError> => {
  const attempt = (tries: number): Effect.Effect<Answer | undefined, ApiError> =>
    Effect.catchTag(stake.hold(once(parts, requestId, body)), "ApiError", (error) => {
      if (error.code === "insufficient_quota")
        return Effect.flatMap(parts.stop.during(stake.more), (isMore) => {
          if (Option.isNone(isMore)) return Effect.succeed(undefined)
          return isMore.value ? attempt(tries) : Effect.fail(error)
        })
      const ms = waitMs(error, tries, parts.random)
      if (ms === undefined) return Effect.fail(error)
      return Effect.flatMap(parts.stop.toldWithin(ms), (isTold) => (isTold ? Effect.succeed(undefined) : attempt(tries + 1)))
    })
  return attempt(1)
}

/** Runs a line as if its key had called. Undefined: it was not run. */
export const runLine = (parts: LineParts, raw: RawLine, stake: Stake): Effect.Effect<LineResult | undefined> =>
  Effect.suspend(() => {
    const { line } = raw
    const id = lineId(parts.batch.id, line)
    const read = readInputLine(raw, parts.target.path)
    // pre-flight has read it, so the settings have changed since
    if (isBatchError(read))
      return Effect.succeed({ line, ok: false, body: errorLine(id, null, apiError("invalid_request_error", read.message, { param: read.param ?? undefined })) })
    const { customId, body } = read
    return patiently(parts, id, body, stake).pipe(
      Effect.map((answer): LineResult | undefined => {
        if (!answer) return undefined
        const { reply, settlement, begunMs } = answer
        return { line, ok: true, body: outputLine(id, customId, reply.status, "json" in reply ? reply.json : null), settlement, begunMs }
      }),
      Effect.catchTag("ApiError", (error) => Effect.succeed({ line, ok: false, body: errorLine(id, customId, error) })),
      // an answer that is no JSON; its hold ends by itself
      Effect.catchDefect((defect) => Effect.succeed({ line, ok: false, body: errorLine(id, customId, internal(parts.house, parts.batch, Cause.die(defect))) })),
    )
  })
