import type { Socket } from "node:net"
import { Effect } from "effect"
import { type Cohorts, makeCohorts } from "../../services/cohorts.ts"
import { type Link, LinkedList } from "../../services/linked-list.ts"
import type { AbortReason, Exchange } from "../exchange.ts"

/** The requests that are being served, each until its reply is complete and its call is settled. */
export interface InFlight {
  readonly size: number
  begin(exchange: Exchange): Link<Exchange>
  end(link: Link<Exchange>): void
  all(): readonly Exchange[]
  /** The pipelined requests of a connection that have no complete reply yet, in order. */
  owedBy(socket: Socket): readonly Exchange[]
  abortAll(reason: AbortReason): void
  /** In which they go through their stages. */
  readonly cohorts: Cohorts
  /** Succeeds when nothing is in flight. */
  readonly empty: Effect.Effect<void>
}

export const makeInFlight = (): InFlight => {
  const open = new LinkedList<Exchange>()
  const waiters = new Set<() => void>()
  /** Begun in this turn: they are a cohort, even where each ends before the next begins. */
  let inTurn = 0
  return {
    get size() {
      return open.size
    },
    begin: (exchange) => {
      if (inTurn++ === 0)
        setImmediate(() => {
          inTurn = 0
        })
      return open.add(exchange)
    },
    end: (link) => {
      open.remove(link)
      if (open.size === 0) for (const wake of waiters) wake()
    },
    cohorts: makeCohorts(() => Math.max(open.size, inTurn)),
    all: () => open.values(),
    owedBy: (socket) =>
      open.values().filter(({ req, res }) => req.socket === socket && !res.writableEnded),
    abortAll: (reason) => {
      for (const exchange of open.values()) exchange.abort(reason)
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
