import { Effect, Semaphore } from "effect"

/** How many requests fetch their media at once: each may hold 70 MB. */
const mostAtOnce = 16
const mostOfAccount = 4

interface OfAccount {
  readonly turns: Semaphore.Semaphore
  requests: number
}

/**
 * Turns of requests whose media are at addresses. They are fetched before the call is admitted, so
 * that neither a key's limits nor the memory of bodies bounds them. Requests of an account wait for
 * each other first: those of slow hosts hold up no other account.
 */
export const makeFetchTurns = () => {
  const all = Semaphore.makeUnsafe(mostAtOnce)
  const accounts = new Map<string, OfAccount>()
  const enter = (account: string): OfAccount => {
    const own = accounts.get(account) ?? {
      turns: Semaphore.makeUnsafe(mostOfAccount),
      requests: 0,
    }
    accounts.set(account, own)
    own.requests++
    return own
  }
  return <A, E, R>(account: string, fetching: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    Effect.acquireUseRelease(
      Effect.sync(() => enter(account)),
      ({ turns }) => turns.withPermits(1)(all.withPermits(1)(fetching)),
      (own) =>
        Effect.sync(() => {
          if (--own.requests === 0) accounts.delete(account)
        }),
    )
}
