import { Effect } from "effect"
import { type ApiError, apiError, type Clock, makeSingleFlight } from "../../core/index.ts"
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
  const loads = makeSingleFlight<V | undefined, E | ApiError>()
  let forgotten = 0

  const remember = (key: string, value: V | undefined, askedMs: number) => {
    if (value) {
      found.set(key, { value, untilMs: askedMs + options.foundMs })
      missing.delete(key)
    } else {
      missing.set(key, askedMs + options.missingMs)
      found.delete(key)
    }
  }

  const cached = (key: string): Effect.Effect<V | undefined> | undefined => {
    const nowMs = clock.nowMs()
    const hit = found.get(key)
    if (hit && nowMs < hit.untilMs) return Effect.succeed(hit.value)
    return nowMs < (missing.get(key) ?? 0) ? Effect.succeed(undefined) : undefined
  }

  const loadAndRemember = (key: string): Effect.Effect<V | undefined, E | ApiError> => {
    if (loads.size > options.maxLoads)
      return Effect.fail(
        apiError(
          "backend_busy",
          "Too many API keys are being looked up right now. Try again shortly.",
        ),
      )
    const [askedMs, forgottenBefore] = [clock.nowMs(), forgotten]
    return Effect.tap(load(key), (value) =>
      Effect.sync(() => forgotten === forgottenBefore && remember(key, value, askedMs)),
    )
  }

  // uninterruptible, as the query of a load that nobody waits for goes on: it counts until it ends,
  // and who came meanwhile finds its result in the cache
  const cachedOrLoaded = (key: string) =>
    Effect.uninterruptible(Effect.suspend(() => cached(key) ?? loadAndRemember(key)))

  const find = (key: string): Effect.Effect<V | undefined, E | ApiError> =>
    cached(key) ?? loads.run(key, cachedOrLoaded(key))

  return {
    find,
    forget: (matches) => {
      for (const [key, { value }] of found.entries()) if (matches(value)) found.delete(key)
      // running loads may return values from before the change; which ones is not known yet
      forgotten++
      loads.forget()
    },
  }
}
