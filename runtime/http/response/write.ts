import type { ServerResponse } from "node:http"
import { Effect } from "effect"

const drained = (res: ServerResponse): Effect.Effect<void> =>
  Effect.callback<void>((resume) => {
    const go = () => resume(Effect.void)
    res.once("drain", go)
    return Effect.sync(() => {
      res.off("drain", go)
    })
  })

/**
 * Waits while the socket's buffer is full. A client that reads nothing for `stallMs` is
 * disconnected, which interrupts the request.
 */
export const write = (
  res: ServerResponse,
  chunk: string | Uint8Array,
  stallMs: number,
): Effect.Effect<void> =>
  Effect.suspend(() => {
    if (res.destroyed) return Effect.interrupt
    if (res.write(chunk)) return Effect.void
    return drained(res).pipe(
      Effect.timeoutOrElse({
        duration: stallMs,
        orElse: () =>
          Effect.suspend(() => {
            res.destroy()
            return Effect.interrupt
          }),
      }),
    )
  })
