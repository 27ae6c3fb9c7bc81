import { Cause, Effect, Result, Stream } from "effect"
import { type ApiError, apiError, portFailure } from "../errors.ts"
import type { Plan, PlanError, Reply } from "../ports/endpoint.ts"
import type { Log } from "../services/log.ts"

/**
 * What a client sees of a failed port (see `portFailure`); the log sees what the port said.
 */
const maskError =
  (log: Log) =>
  (error: PlanError): ApiError => {
    const failed = (port: string, reason: string, cause?: unknown) => {
      log.error("port.failed", "a port failed", { port, reason, cause: String(cause ?? "") })
      return apiError("internal_error")
    }
    switch (error._tag) {
      case "PortError":
        if (error.why !== "busy") failed(error.port, error.message, error.cause)
        return portFailure(error)
      case "BlobMissing":
        return failed("storage", `the blob ${error.key} is missing`)
      case "BlobTooLarge":
        return apiError("payload_too_large")
      case "StorageFull":
        log.error("storage.full", "the disk is full", { key: error.key })
        return portFailure({ why: "full" })
      default:
        return error
    }
  }

/**
 * The same for a failing effect; of a defect, clients see `internal_error` and the log sees where a
 * plugin threw.
 */
export const maskInternalErrors = (
  log: Log,
): (<A, R>(effect: Effect.Effect<A, PlanError, R>) => Effect.Effect<A, ApiError, R>) => {
  const mask = maskError(log)
  const masked = (cause: Cause.Cause<PlanError>) => {
    const found = Cause.findDefect(cause)
    if (Result.isFailure(found)) return Effect.failCause(Cause.map(cause, mask))
    const defect = found.success
    const thrown = defect instanceof Error ? defect.stack : String(defect)
    log.error("plugin.threw", "a plugin threw", { cause: thrown })
    return Effect.fail(apiError("internal_error"))
  }
  return Effect.catchCause(masked)
}

const maskBytes = (reply: Reply<PlanError>, log: Log): Reply => {
  if (!("bytes" in reply)) return reply
  const { bytes, ranged } = reply
  const mask = Stream.mapError(maskError(log))
  if (!ranged) return { ...reply, bytes: mask(bytes), ranged }
  const slice = (from: number, to: number) => mask(ranged.slice(from, to))
  return { ...reply, bytes: mask(bytes), ranged: { ...ranged, slice } }
}

/**
 * Runs a plan: the one place where failures of ports become errors that a client can see, before
 * the reply and in its bytes.
 */
export const runPlan = (log: Log, { run }: Plan) =>
  Effect.map(maskInternalErrors(log)(run), (reply) => maskBytes(reply, log))
