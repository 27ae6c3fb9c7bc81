import type { Socket } from "node:net"
import { Effect } from "effect"
import type { AbortReason, Exchange } from "../exchange.ts"

/** The requests that are being served, each until its reply is complete and its call is settled. */
export interface InFlight {
  readonly size: number
  begin(exchange: Exchange): void
  end(exchange: Exchange): void
  all(): Iterable<Exchange>
  /** The pipelined requests of a connection that have no complete reply yet, in order. */
  owedBy(socket: Socket): readonly Exchange[]
  abortAll(reason: AbortReason): void
  /** Succeeds when nothing is in flight. */
  readonly empty: Effect.Effect<void>
}

export const makeInFlight = (): InFlight => {
  const open = new Set<Exchange>()
  const waiters = new Set<() => void>()
  return {
    get size() {
      return open.size
    },
    begin: (exchange) => void open.add(exchange),
    end: (exchange) => {
      open.delete(exchange)
      if (open.size === 0) for (const wake of waiters) wake()
    },
    all: () => open,
    owedBy: (socket) =>
      [...open].filter(({ req, res }) => req.socket === socket && !res.writableEnded),
    abortAll: (reason) => {
      for (const exchange of [...open]) exchange.abort(reason)
    },
    empty: Effect.callback<void>((resume) => {
      if (open.size === 0) return resume(Effect.void)
      const wake = () => {
        waiters.delete(wake)
        resume(Effect.void)
      }
      waiters.add(wake)
      return Effect.sync(() => {
        waiters.delete(wake)
      })
    }),
  }
}
