import { Effect, type Scope, Stream } from "effect"
import type { Answer } from "../../../core/call/contract.ts"
import type { ApiError } from "../../../core/errors.ts"
import type { Json, Strings } from "../../../core/json.ts"
import { formatRupiah } from "../../../core/money.ts"
import type { Reply } from "../../../core/ports/endpoint.ts"
import type { Exchange } from "../exchange.ts"
import { write, writeHead } from "./write.ts"

export interface SseOptions {
  readonly pingMs: number
  readonly headMs: number
  readonly writeStallMs: number
  /** +1 when a stream begins, -1 when it ends. */
  readonly countOpen: (change: number) => void
}

/**
 * One server-sent event (WHATWG HTML, section 9.2). JSON text has no line breaks, so one `data:`
 * line is enough.
 */
export const frame = (event: Json): string => `data: ${JSON.stringify(event)}\n\n`
const pingFrame = ": ping\n\n"
const doneFrame = "data: [DONE]\n\n"

type EventReply = Extract<Reply, { readonly events: unknown }>

const streamHeaders: Strings = {
  "content-type": "text/event-stream; charset=utf-8",
  "cache-control": "no-cache",
  "x-accel-buffering": "no",
}

/** Trailers need chunked coding, which HTTP/1.0 does not have. */
const costTrailer = "X-Cost-IDR"
const timingTrailer = "Server-Timing"
const canTrail = ({ req }: Exchange) => req.httpVersion === "1.1"

/**
 * States: waiting (nothing was sent: an error keeps its status and its JSON) -> open (the head was
 * sent, with the first event or `headMs` after the call was admitted, as clients time out on heads)
 * -> ended (`[DONE]`, cost as a trailer).
 * An error after that becomes the last event: see `sendError`.
 */
export const sendEvents = Effect.fnUntraced(function* (
  exchange: Exchange,
  reply: EventReply,
  answer: Answer,
  options: SseOptions,
): Effect.fn.Return<void, ApiError, Scope.Scope> {
  const { req, res } = exchange
  const ping = Effect.sync(() => {
    if (!res.writableNeedDrain && !res.destroyed) res.write(pingFrame)
  })
  // in one step: the first event, `headMs` and a ping may come together
  const ensureOpen = Effect.suspend(() => {
    if (exchange.streaming) return Effect.void
    if (res.destroyed) return Effect.interrupt
    writeHead(exchange, reply.status, {
      ...streamHeaders,
      ...(canTrail(exchange) && { trailer: `${costTrailer}, ${timingTrailer}` }),
      ...reply.headers,
    })
    exchange.streaming = true
    return Effect.acquireRelease(
      Effect.sync(() => options.countOpen(1)),
      () => Effect.sync(() => options.countOpen(-1)),
    )
  })
  if (req.method === "HEAD") {
    yield* ensureOpen
    res.end()
    return
  }
  yield* Effect.sleep(options.headMs).pipe(
    Effect.andThen(ensureOpen),
    Effect.andThen(Effect.sync(() => res.flushHeaders())),
    Effect.forkScoped,
  )
  yield* Effect.sleep(options.pingMs).pipe(
    Effect.andThen(ensureOpen),
    Effect.andThen(ping),
    Effect.forever,
    Effect.forkScoped,
  )
  yield* Stream.runForEachArray(reply.events, (events) =>
    Effect.andThen(
      ensureOpen,
      Effect.suspend(() => write(res, events.map(frame).join(""), options.writeStallMs)),
    ),
  )
  yield* ensureOpen
  const cost = answer.cost()
  if (cost !== undefined && canTrail(exchange))
    res.addTrailers({ [costTrailer]: formatRupiah(cost), [timingTrailer]: answer.timing() })
  res.end(doneFrame)
})
