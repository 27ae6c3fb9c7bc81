import { Effect } from "effect"
import { makeShares, type Share, type WaitingLine } from "./shares.ts"

/** The right of one line to run, and the memory that it takes. */
export interface Permit {
  /** The line is answered: its slot is free, and `keptBytes` stay in memory until `release`. */
  answered(keptBytes: number): void
  /** Frees slot and memory. Idempotent; `answered` need not come before it. */
  release(): void
  /**
   * While the line waits, for an engine or for money, other tenants' lines may use its slot and its
   * memory; its own tenant gets no more of either for that.
   */
  resting<A, E>(wait: Effect.Effect<A, E>): Effect.Effect<A, E>
}

/**
 * A fair limiter for the lines of all batches of this process: so many at once, in so much memory,
 * shared evenly by the tenants.
 */
export interface LineScheduler {
  /** Waits for a permit. `bytes`: what the line takes in memory until it is answered. */
  acquire(tenant: string, bytes: number): Effect.Effect<Permit>
}

/** What a line takes beside its text. */
const overheadBytes = 1_024

/**
 * The ledger admits in one statement what is let in together: once all slots are taken, this share
 * of them must be free again before the next line gets in.
 */
const burstShare = 1 / 4

/**
 * States: open -> full (every slot is taken) -> open (enough of them are free).
 * Lines that have rested go on at once, so that for a while more may run than there are slots, in
 * more memory.
 * A line that needs more memory than is free is not overtaken, as small ones would keep it out for
 * ever; alone it always passes.
 */
const makePool = (slots: number, memoryBytes: number) => {
  const shares = makeShares()
  const burst = Math.max(1, Math.floor(slots * burstShare))
  let running = 0
  let usedBytes = 0
  let lentBytes = 0
  let isFull = false

  const takeSlot = (): void => {
    running += 1
    isFull ||= running >= slots
  }

  return {
    shares,
    takeSlot,
    freeSlot: (): void => {
      running -= 1
    },
    useBytes: (more: number): void => {
      usedBytes += more
    },
    /**
     * Lends the memory of a resting line; all that rest lend at most `memoryBytes`. Returns how
     * much of `bytes` is lent.
     */
    lend: (bytes: number): number => {
      const lent = lentBytes + bytes <= memoryBytes ? bytes : 0
      lentBytes += lent
      usedBytes -= lent
      return lent
    },
    takeBack: (lent: number): void => {
      lentBytes -= lent
      usedBytes += lent
    },
    /** Gives permits to the lines that may run now. */
    admit: (): void => {
      if (isFull && slots - running < burst) return
      isFull = false
      const nextShare = () => shares.next(slots, memoryBytes / 2)
      for (let next = nextShare(); next && !isFull; next = nextShare()) {
        const needed = next.waiting[0]?.bytes ?? 0
        if (usedBytes > 0 && usedBytes + needed > memoryBytes) return
        takeSlot()
        usedBytes += needed
        shares.begin(next)?.admit()
      }
    },
  }
}
type Pool = ReturnType<typeof makePool>

const makePermit = (
  { shares, takeSlot, freeSlot, useBytes, lend, takeBack, admit }: Pool,
  share: Share,
  bytes: number,
): Permit => {
  let isRunning = true
  let kept = bytes
  const keep = (keptBytes: number) => {
    useBytes(keptBytes - kept)
    kept = keptBytes
    if (isRunning) {
      isRunning = false
      freeSlot()
      shares.end(share)
    }
    admit()
  }
  const rest = Effect.sync(() => {
    const rested = { kept, lent: lend(kept) }
    share.restingBytes += kept
    freeSlot()
    admit()
    return rested
  })
  const wake = (rested: { readonly kept: number; readonly lent: number }) =>
    Effect.sync(() => {
      share.restingBytes -= rested.kept
      takeBack(rested.lent)
      takeSlot()
    })
  return {
    answered: (keptBytes) => keep(keptBytes + overheadBytes),
    release: () => keep(0),
    resting: (wait) => Effect.acquireUseRelease(rest, () => wait, wake),
  }
}

export const makeLineScheduler = (slots: number, memoryBytes: number): LineScheduler => {
  const pool = makePool(slots, memoryBytes)
  return {
    acquire: (tenant, textBytes) =>
      Effect.suspend(() => {
        const bytes = textBytes + overheadBytes
        const share = pool.shares.of(tenant)
        let permit: Permit | undefined
        let waiting: WaitingLine | undefined
        const admitted = Effect.callback<Permit>((resume) => {
          waiting = {
            bytes,
            admit: () => {
              permit = makePermit(pool, share, bytes)
              resume(Effect.succeed(permit))
            },
          }
          share.waiting.push(waiting)
          pool.admit()
        })
        // also where it has its permit, and the fiber does not know yet
        const giveUp = Effect.sync(() => {
          if (waiting) pool.shares.giveUp(share, waiting)
          permit?.release()
          pool.admit()
        })
        return Effect.onInterrupt(admitted, () => giveUp)
      }),
  }
}
