import { Effect } from "effect"
import type { ApiError } from "../../../core/index.ts"

/**
 * What one line of a key holds in the ledger. States: idle -> trying -> holding (admitted, and not
 * settled yet) -> idle (`release`);
 * trying -> idle (refused or failed). Most lines hold far more than they cost: one that was refused
 * may be covered when others are settled.
 */
export interface Hold {
  /** Runs a call that is admitted, or refused, by the ledger. */
  attempt<A>(call: Effect.Effect<A, ApiError>): Effect.Effect<A, ApiError>
  /**
   * After a refusal for want of money: waits until another line releases its hold, and returns
   * true; false when no other line holds anything.
   */
  readonly freed: Effect.Effect<boolean>
  /** The call is settled, or given up. Idempotent. */
  release(): void
}

/**
 * The holds of all lines of one key in this process: balance and monthly cap are checked against
 * their sum.
 */
export interface HoldTracker {
  open(): Hold
  /** Whether a line waits for others to release their holds. */
  readonly isAwaited: boolean
}

export const makeHoldTracker = (): HoldTracker => {
  const waiting = new Set<() => void>()
  /** Number of lines that try or hold. */
  let active = 0
  let releases = 0

  const end = (isRelease: boolean): void => {
    active -= 1
    if (isRelease) releases += 1
    for (const check of [...waiting]) check()
  }

  const open = (): Hold => {
    let isActive = false
    let seen = 0
    const release = (isRelease = true): void => {
      if (!isActive) return
      isActive = false
      end(isRelease)
    }
    return {
      attempt: (call) =>
        Effect.suspend(() => {
          isActive = true
          active += 1
          seen = releases
          return Effect.tapError(call, ({ code }) =>
            Effect.sync(() => release(code !== "insufficient_quota")),
          )
        }),
      freed: Effect.callback<boolean>((resume) => {
        const check = () => {
          if (releases === seen && active > 0) return
          waiting.delete(check)
          resume(Effect.succeed(releases !== seen))
        }
        waiting.add(check)
        check()
        return Effect.sync(() => void waiting.delete(check))
      }),
      release: () => release(),
    }
  }
  return {
    open,
    get isAwaited() {
      return waiting.size > 0
    },
  }
}

/** One tracker for each key that has lines here. */
export const makeHoldTrackers = () => {
  const trackers = new Map<string, { readonly tracker: HoldTracker; users: number }>()
  return {
    /** Lends the key's tracker to `work` while it runs. */
    using: <A, E>(
      keyId: string,
      work: (tracker: HoldTracker) => Effect.Effect<A, E>,
    ): Effect.Effect<A, E> =>
      Effect.suspend(() => {
        const one = trackers.get(keyId) ?? { tracker: makeHoldTracker(), users: 0 }
        trackers.set(keyId, one)
        one.users += 1
        const leave = Effect.sync(() => {
          one.users -= 1
          if (one.users === 0) trackers.delete(keyId)
        })
        return Effect.ensuring(work(one.tracker), leave)
      }),
  }
}
