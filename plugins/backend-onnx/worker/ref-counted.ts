import { Deferred, Effect, Exit, Scope } from "effect"

/**
 * Reference-counted resources, shared by key: the first owner opens, and the resource is freed when
 * the scope of the last owner closes.
 * An open that fails, or whose opener is interrupted, fails for everybody who waits for it and is
 * forgotten.
 */
export const makeRefCounted = <A, E>() => {
  interface Entry {
    readonly opened: Deferred.Deferred<A, E>
    readonly scope: Scope.Closeable
    owners: number
  }
  const entries = new Map<string, Entry>()

  const release = (key: string, entry: Entry) =>
    Effect.suspend(() => {
      entry.owners--
      if (entry.owners > 0) return Effect.void
      if (entries.get(key) === entry) entries.delete(key)
      return Scope.close(entry.scope, Exit.void)
    })

  const enter = (key: string, open: Effect.Effect<A, E, Scope.Scope>) =>
    Effect.sync(() => {
      const known = entries.get(key)
      if (known) {
        known.owners++
        return { entry: known, wait: Deferred.await(known.opened) }
      }
      const entry: Entry = {
        opened: Deferred.makeUnsafe<A, E>(),
        scope: Scope.makeUnsafe(),
        owners: 1,
      }
      entries.set(key, entry)
      const wait = open.pipe(
        Scope.provide(entry.scope),
        Effect.onExit((exit) =>
          Effect.sync(() => {
            if (Exit.isFailure(exit)) entries.delete(key)
            Deferred.doneUnsafe(entry.opened, exit)
          }),
        ),
      )
      return { entry, wait }
    })

  return {
    get: (key: string, open: Effect.Effect<A, E, Scope.Scope>): Effect.Effect<A, E, Scope.Scope> =>
      Effect.acquireRelease(enter(key, open), ({ entry }) => release(key, entry)).pipe(
        Effect.flatMap(({ wait }) => wait),
      ),
  }
}
