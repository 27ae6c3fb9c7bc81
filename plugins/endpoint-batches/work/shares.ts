/** A line that waits for its permit. */
export interface WaitingLine {
  readonly bytes: number
  admit(): void
}

/** The lines of one tenant. */
export interface Share {
  readonly tenant: string
  /** Number of admitted lines, with those that rest. */
  running: number
  /** Memory of the lines that rest. */
  restingBytes: number
  /** The turn at which its last line was admitted. */
  servedAt: number
  readonly waiting: WaitingLine[]
}

const comesBefore = (a: Share, b: Share): boolean =>
  a.running === b.running ? a.servedAt < b.servedAt : a.running < b.running

/** The shares of all tenants that have lines here. */
export const makeShares = () => {
  const shares = new Map<string, Share>()
  let turns = 0
  const forgetIdle = ({ tenant, running, waiting }: Share): void => {
    if (running === 0 && waiting.length === 0) shares.delete(tenant)
  }
  return {
    of: (tenant: string): Share => {
      const share = shares.get(tenant) ?? {
        tenant,
        running: 0,
        restingBytes: 0,
        servedAt: 0,
        waiting: [],
      }
      shares.set(tenant, share)
      return share
    },
    /**
     * The tenant with the fewest admitted lines is next, so that all who have enough lines run the
     * same number; one with `most` lines, or `mostRestingBytes`, gets no more.
     */
    next: (most: number, mostRestingBytes: number): Share | undefined => {
      let best: Share | undefined
      for (const share of shares.values())
        if (
          share.waiting.length > 0 &&
          share.running < most &&
          share.restingBytes < mostRestingBytes &&
          (!best || comesBefore(share, best))
        )
          best = share
      return best
    },
    begin: (share: Share): WaitingLine | undefined => {
      turns += 1
      share.servedAt = turns
      share.running += 1
      return share.waiting.shift()
    },
    end: (share: Share): void => {
      share.running -= 1
      forgetIdle(share)
    },
    giveUp: (share: Share, waiting: WaitingLine): void => {
      const at = share.waiting.indexOf(waiting)
      if (at < 0) return
      share.waiting.splice(at, 1)
      forgetIdle(share)
    },
  }
}
