import { Effect } from "effect"
import { type ApiError, apiError, type Log, type Plan, type PortError, type Reply } from "../../../core/index.ts"

type Work<A> = Effect.Effect<A, ApiError | PortError>

/** What a failed port looks like to a client; the log sees what it said. */
export const answered = <A>(log: Log, work: Work<A>): Effect.Effect<A, ApiError> =>
  Effect.mapError(work, (error) => {
    if (error._tag === "ApiError") return error
    log.error("a port failed", { port: error.port, reason: error.message, cause: String(error.cause ?? "") })
    return apiError(error.busy ? "backend_busy" : "internal_error")
  })

/** A plan that costs nothing. */
export const freePlan = (log: Log, work: Work<Reply>): Plan => ({ bound: {}, run: answered(log, work) })
