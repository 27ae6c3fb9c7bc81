/** What waits to be let in. */
export interface Waiting {
  readonly bytes: number
  admit(): void
}

/** One tenant's. */
export interface Share {
  readonly tenant: string
  /** Those that rest count, too. */
  running: number
  /** What those that rest keep in memory. */
  restingBytes: number
  /** When one of its lines was let in last, in turns. */
  servedAt: number
  readonly waiting: Waiting[]
}

const comesBefore = (a: Share, b: Share): boolean =>
  a.running === b.running ? a.servedAt < b.servedAt : a.running < b.running

/** Those of the tenants that have something here. */
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
    /** The tenant with the fewest lines that run is next, so that all who want have the same number, whoever came first; one with `most`, or with so many bytes that rest, is not. */
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
    begin: (share: Share): Waiting | undefined => {
      turns += 1
      share.servedAt = turns
      share.running += 1
      return share.waiting.shift()
    },
    end: (share: Share): void => {
      share.running -= 1
      forgetIdle(share)
    },
    giveUp: (share: Share, waiting: Waiting): void => {
      const at = share.waiting.indexOf(waiting)
      if (at < 0) return
      share.waiting.splice(at, 1)
      forgetIdle(share)
    },
  }
}
