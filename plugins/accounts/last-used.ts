import { Cause, Effect, type Scope } from "effect"
import type { Clock, Log } from "../../core/index.ts"
import { makeBoundedMap } from "./bounded-map.ts"
import type { KeyRows } from "./key-rows.ts"

const maxWaiting = 10_000
const minuteMs = 60_000

/**
 * Records when keys, or sessions, were last used, in the background: a call never waits for it, nor
 * fails because of it.
 */
export interface LastUsed {
  note(used: { readonly id: string; readonly lastUsedMs: number }): void
  /** Writes what was noted, in one statement. A failure is logged, and its times are lost. */
  readonly flush: Effect.Effect<void>
}

export const makeLastUsed = (rows: Pick<KeyRows, "markUsed">, clock: Clock, log: Log): LastUsed => {
  const noted = makeBoundedMap<string, number>(maxWaiting)
  let waiting = new Map<string, number>()
  return {
    note: ({ id, lastUsedMs }) => {
      const nowMs = clock.nowMs()
      const lastMs = Math.max(lastUsedMs, noted.get(id) ?? Number.NEGATIVE_INFINITY)
      if (nowMs - lastMs < minuteMs || waiting.size >= maxWaiting) return
      noted.set(id, nowMs)
      waiting.set(id, nowMs)
    },
    flush: Effect.suspend(() => {
      if (waiting.size === 0) return Effect.void
      const uses = waiting
      waiting = new Map()
      return rows.markUsed(uses)
    }).pipe(
      Effect.catchCause((cause) =>
        Effect.sync(() =>
          log.warn(
            "key.last_use_not_stored",
            "when keys or sessions were last used could not be written",
            {
              cause: Cause.pretty(cause),
            },
          ),
        ),
      ),
    ),
  }
}

/** Flushes every 5 s, and once more when the Scope closes. */
export const flushInBackground = ({ flush }: LastUsed): Effect.Effect<void, never, Scope.Scope> =>
  Effect.addFinalizer(() => Effect.timeoutOption(flush, "5 seconds")).pipe(
    Effect.andThen(
      Effect.forkScoped(Effect.sleep("5 seconds").pipe(Effect.andThen(flush), Effect.forever)),
    ),
    Effect.asVoid,
  )
