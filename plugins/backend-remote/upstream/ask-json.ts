import { Effect, type Scope } from "effect"
import type { FormData } from "undici"
import type { Json } from "../../../core/json.ts"
import { connectionFailure, failure, type UpstreamFailure } from "./failure.ts"
import { errorText, readUpTo } from "./status-failure.ts"
import type { Upstream } from "./upstream.ts"

/**
 * Sends a body and reads the JSON that comes back, of at most `maxBytes`. An answer of
 * another type, or an error with status 200, is garbled.
 */
export const askJson = (
  upstream: Upstream,
  path: string,
  body: Json | FormData,
  { timeoutMs, maxBytes }: { readonly timeoutMs: number; readonly maxBytes: number },
): Effect.Effect<Json, UpstreamFailure, Scope.Scope> =>
  Effect.gen(function* () {
    const reply = yield* upstream.connection.call(path, body, timeoutMs)
    return yield* Effect.tryPromise({
      try: async () => {
        const bytes = await readUpTo(reply.body, maxBytes)
        if (!bytes) throw failure("garbled", `its answer has more than ${maxBytes} bytes`)
        return parse(bytes.toString(), reply.contentType)
      },
      catch: (cause) => connectionFailure(cause, true),
    }).pipe(
      Effect.timeoutOrElse({
        duration: Math.max(0, timeoutMs),
        orElse: () => Effect.fail(failure("slow", `no whole answer within ${timeoutMs} ms`)),
      }),
    )
  })

const parse = (text: string, contentType: string): Json => {
  let json: Json
  try {
    json = JSON.parse(text) as Json
  } catch {
    throw failure("garbled", `it sent ${contentType || "no type"}, not JSON`)
  }
  if (typeof json === "object" && json !== null && "error" in json && json.error)
    throw failure("unavailable", `it failed: ${errorText(json).slice(0, 300)}`)
  return json
}
