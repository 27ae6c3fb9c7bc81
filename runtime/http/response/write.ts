import type { ServerResponse } from "node:http"
import { Effect } from "effect"
import type { Exchange } from "../exchange.ts"

type Headers = Readonly<Record<string, string | number>>

/**
 * Writes the head, with what every reply shows. In one call: Node takes headers that were set one
 * by one on a slow way.
 */
export const writeHead = (
  { res, requestId }: Exchange,
  status: number,
  headers?: Headers,
  bytes?: number,
): void =>
  void res.writeHead(status, {
    "X-Request-ID": requestId,
    "X-Content-Type-Options": "nosniff",
    ...headers,
    ...(bytes !== undefined && { "content-length": bytes }),
  })

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
