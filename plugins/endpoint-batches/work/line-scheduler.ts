import { Effect } from "effect"
import { makeShares, type Share, type Waiting } from "./shares.ts"

/** A line that may run. */
export interface Seat {
  /** It has ended, so that another may begin; so many bytes of it stay in memory until `leave`. */
  ended(keptBytes: number): void
  /** Nothing of it is in memory any more. Again is harmless, also without `ended`. */
  leave(): void
  /** While it only waits, for an engine or for money, another tenant's line may run in its place and its memory; its own tenant has no more of them for that. */
  resting<A, E>(wait: Effect.Effect<A, E>): Effect.Effect<A, E>
}

/** Lets lines of all batches of this process run: so many at once, in so much memory, shared evenly by the tenants. */
export interface Gate {
  enter(tenant: string, bytes: number): Effect.Effect<Seat>
}

/** What a line takes beside its text. */
const lineBytes = 1_024

/** Lines that are let in together are admitted by the ledger in one statement: once all places are taken, this share of them must be free again before the next one gets in. */
const burstShare = 1 / 4

/**
 * States: open -> full (every place is taken) -> open (enough of them are free).
 * Lines that have rested go on at once, so that for a while more may run than there are places, in more memory.
 * A line that needs more memory than is free is not overtaken, as small ones would keep it out for ever; alone it always passes.
 */
const makeRoom = (slots: number, memoryBytes: number) => {
  const shares = makeShares()
  const burst = Math.max(1, Math.floor(slots * burstShare))
  let running = 0
  let usedBytes = 0
  let asideBytes = 0
  let isFull = false

  const occupy = (): void => {
    running += 1
    isFull ||= running >= slots
  }

  return {
    shares,
    occupy,
    vacate: (): void => {
      running -= 1
    },
    useBytes: (more: number): void => {
      usedBytes += more
    },
    /** What a resting line keeps: all that rest may have as much memory again. Answers how much of it counts there. */
    setAside: (bytes: number): number => {
      const aside = asideBytes + bytes <= memoryBytes ? bytes : 0
      asideBytes += aside
      usedBytes -= aside
      return aside
    },
    takeBack: (aside: number): void => {
      asideBytes -= aside
      usedBytes += aside
    },
    /** Lets in who may come in now. */
    admit: (): void => {
      if (isFull && slots - running < burst) return
      isFull = false
      const nextShare = () => shares.next(slots, memoryBytes / 2)
      for (let next = nextShare(); next && !isFull; next = nextShare()) {
        const needed = next.waiting[0]?.bytes ?? 0
        if (usedBytes > 0 && usedBytes + needed > memoryBytes) return
        occupy()
        usedBytes += needed
        shares.begin(next)?.admit()
      }
    },
  }
}
type Room = ReturnType<typeof makeRoom>

const makeSeat = (
  { shares, occupy, vacate, useBytes, setAside, takeBack, admit }: Room,
  share: Share,
  bytes: number,
): Seat => {
  let isRunning = true
  let kept = bytes
  const change = (keptBytes: number) => {
    useBytes(keptBytes - kept)
    kept = keptBytes
    if (isRunning) {
      isRunning = false
      vacate()
      shares.end(share)
    }
    admit()
  }
  const rest = Effect.sync(() => {
    const rested = { kept, aside: setAside(kept) }
    share.restingBytes += kept
    vacate()
    admit()
    return rested
  })
  const wake = (rested: { readonly kept: number; readonly aside: number }) =>
    Effect.sync(() => {
      share.restingBytes -= rested.kept
      takeBack(rested.aside)
      occupy()
    })
  return {
    ended: (keptBytes) => change(keptBytes + lineBytes),
    leave: () => change(0),
    resting: (wait) => Effect.acquireUseRelease(rest, () => wait, wake),
  }
}

export const makeGate = (slots: number, memoryBytes: number): Gate => {
  const room = makeRoom(slots, memoryBytes)
  return {
    enter: (tenant, textBytes) =>
      Effect.suspend(() => {
        const bytes = textBytes + lineBytes
        const share = room.shares.of(tenant)
        let seat: Seat | undefined
        let waiting: Waiting | undefined
        const admitted = Effect.callback<Seat>((resume) => {
          waiting = {
            bytes,
            admit: () => {
              seat = makeSeat(room, share, bytes)
              resume(Effect.succeed(seat))
            },
          }
          share.waiting.push(waiting)
          room.admit()
        })
        // also where it was let in, and does not know yet
        const giveUp = Effect.sync(() => {
          if (waiting) room.shares.giveUp(share, waiting)
          seat?.leave()
          room.admit()
        })
        return Effect.onInterrupt(admitted, () => giveUp)
      }),
  }
}
