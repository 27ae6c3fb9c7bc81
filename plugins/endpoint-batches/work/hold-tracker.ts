import { Effect } from "effect"
import type { ApiError } from "../../../core/index.ts"

/**
 * One line's part of what its key holds. States: idle -> trying -> holding (admitted, and not settled yet) -> idle (`leave`); trying -> idle (refused or failed).
 * Most lines hold far more than they cost in the end: one that was refused may well be covered when others are settled.
 */
export interface Stake {
  /** Runs what holds money. */
  hold<A>(attempt: Effect.Effect<A, ApiError>): Effect.Effect<A, ApiError>
  /** After a refusal for want of money: waits until another line lets go of what it held, and answers true; false when no other holds anything. */
  readonly more: Effect.Effect<boolean>
  /** It is settled, or given up. Again is harmless. */
  leave(): void
}

/** What the lines of one key hold in this process: balance and monthly cap are checked against all of it. */
export interface Purse {
  stake(): Stake
  /** Whether a line waits for what others hold. */
  readonly isWanted: boolean
}

export const makePurse = (): Purse => {
  const waiting = new Set<() => void>()
  /** Lines that try or hold. */
  let active = 0
  let releases = 0

  const end = (isRelease: boolean): void => {
    active -= 1
    if (isRelease) releases += 1
    for (const look of [...waiting]) look()
  }

  const stake = (): Stake => {
    let isActive = false
    let seen = 0
    const leave = (isRelease = true): void => {
      if (!isActive) return
      isActive = false
      end(isRelease)
    }
    return {
      hold: (attempt) =>
        Effect.suspend(() => {
          isActive = true
          active += 1
          seen = releases
          return Effect.tapError(attempt, ({ code }) =>
            Effect.sync(() => leave(code !== "insufficient_quota")),
          )
        }),
      more: Effect.callback<boolean>((resume) => {
        const look = () => {
          if (releases === seen && active > 0) return
          waiting.delete(look)
          resume(Effect.succeed(releases !== seen))
        }
        waiting.add(look)
        look()
        return Effect.sync(() => void waiting.delete(look))
      }),
      leave: () => leave(),
    }
  }
  return {
    stake,
    get isWanted() {
      return waiting.size > 0
    },
  }
}

/** Of each key that has lines here. */
export const makePurses = () => {
  const purses = new Map<string, { readonly purse: Purse; users: number }>()
  return {
    /** While `work` runs. */
    using: <A, E>(
      keyId: string,
      work: (purse: Purse) => Effect.Effect<A, E>,
    ): Effect.Effect<A, E> =>
      Effect.suspend(() => {
        const one = purses.get(keyId) ?? { purse: makePurse(), users: 0 }
        purses.set(keyId, one)
        one.users += 1
        const leave = Effect.sync(() => {
          one.users -= 1
          if (one.users === 0) purses.delete(keyId)
        })
        return Effect.ensuring(work(one.purse), leave)
      }),
  }
}
