import { Deferred, Effect } from "effect"
import { type ApiError, apiError, type Clock } from "../../core/index.ts"
import { makeBoundedMap } from "./bounded-map.ts"

export interface LookupCacheOptions<V, E> {
  readonly load: (key: string) => Effect.Effect<V | undefined, E>
  readonly clock: Clock
  readonly foundMs: number
  /** Shorter than `foundMs`, as a missing key may be created. */
  readonly missingMs: number
  readonly maxEntries: number
  /** Most loads at once; further ones are refused. */
  readonly maxLoads: number
}

export interface LookupCache<V, E> {
  find(key: string): Effect.Effect<V | undefined, E | ApiError>
  /** Drops the values that match; running loads are not cached. Call it after a change. */
  forget(matches: (value: V) => boolean): void
}

/**
 * Caches what `load` found, and for a shorter time what it did not find, in separate maps: random
 * keys never evict real ones.
 * States of a key: unknown -> loading -> found | missing -> unknown (expired, evicted, or
 * forgotten); loading -> unknown (failed, or something was forgotten meanwhile). Callers of a
 * loading key share its load.
 */
export const makeLookupCache = <V extends object, E>(
  options: LookupCacheOptions<V, E>,
): LookupCache<V, E> => {
  const { clock, load, maxEntries } = options
  const found = makeBoundedMap<string, { readonly value: V; readonly untilMs: number }>(maxEntries)
  const missing = makeBoundedMap<string, number>(maxEntries)
  const loading = new Map<string, Deferred.Deferred<V | undefined, E>>()
  let loads = 0

  const remember = (key: string, value: V | undefined, askedMs: number) => {
    if (value) {
      found.set(key, { value, untilMs: askedMs + options.foundMs })
      missing.delete(key)
    } else {
      missing.set(key, askedMs + options.missingMs)
      found.delete(key)
    }
  }

  // detached: an interrupted caller must not end a load that others wait for
  const startLoad = (key: string) =>
    Effect.gen(function* () {
      const answer = Deferred.makeUnsafe<V | undefined, E>()
      const askedMs = clock.nowMs()
      const isCurrent = () => loading.get(key) === answer
      loading.set(key, answer)
      loads++
      yield* load(key).pipe(
        Effect.tap((value) => Effect.sync(() => isCurrent() && remember(key, value, askedMs))),
        Effect.onExit((exit) =>
          Effect.sync(() => {
            loads--
            if (isCurrent()) loading.delete(key)
            Deferred.doneUnsafe(answer, exit)
          }),
        ),
        Effect.forkDetach({ startImmediately: true }),
      )
      return answer
    }).pipe(Effect.uninterruptible)

  const find = (key: string) =>
    Effect.suspend((): Effect.Effect<V | undefined, E | ApiError> => {
      const nowMs = clock.nowMs()
      const hit = found.get(key)
      if (hit && nowMs < hit.untilMs) return Effect.succeed(hit.value)
      if (nowMs < (missing.get(key) ?? 0)) return Effect.succeed(undefined)
      const shared = loading.get(key)
      if (shared) return Deferred.await(shared)
      if (loads >= options.maxLoads)
        return Effect.fail(
          apiError(
            "backend_busy",
            "Too many API keys are being looked up right now. Try again shortly.",
          ),
        )
      return Effect.flatMap(startLoad(key), (answer) => Deferred.await(answer))
    })

  return {
    find,
    forget: (matches) => {
      for (const [key, { value }] of found.entries()) if (matches(value)) found.delete(key)
      // running loads may return values from before the change; which ones is not known yet
      loading.clear()
    },
  }
}
