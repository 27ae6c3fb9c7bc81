import type { Readable } from "node:stream"
import { Effect } from "effect"
import { type ApiError, apiError, isApiError } from "../../../core/errors.ts"

const tooSlow = () => apiError("request_timeout", "The body arrives too slowly.")

const asApiError = (cause: unknown): ApiError =>
  isApiError(cause) ? cause : apiError("invalid_json", "The body is not valid gzip.")

/**
 * The bytes that have arrived meanwhile; undefined at the end. A client that disconnects aborts the
 * exchange, which interrupts this.
 */
export const nextBytes = (
  source: Readable,
  waitMs: number,
): Effect.Effect<Buffer | undefined, ApiError> =>
  Effect.callback((resume) => {
    let timer: NodeJS.Timeout | undefined
    const stop = () => {
      clearTimeout(timer)
      source.off("readable", look).off("end", look).off("error", look)
    }
    const end = (result: Effect.Effect<Buffer | undefined, ApiError>) => {
      stop()
      resume(result)
    }
    function look() {
      const bytes = source.errored ? null : (source.read() as Buffer | null)
      if (bytes) end(Effect.succeed(bytes))
      else if (source.readableEnded) end(Effect.succeed(undefined))
      // a request that breaks off is interrupted
      else if (source.errored && !("httpVersion" in source))
        end(Effect.fail(asApiError(source.errored)))
    }
    source.on("readable", look).on("end", look).on("error", look)
    if (Number.isFinite(waitMs)) timer = setTimeout(() => end(Effect.fail(tooSlow())), waitMs)
    look()
    return Effect.sync(stop)
  })
