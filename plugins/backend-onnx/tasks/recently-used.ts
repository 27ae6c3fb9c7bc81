import { Effect } from "effect"
import type { ApiError } from "../../../core/errors.ts"
import { makeSingleFlight } from "../../../core/single-flight.ts"

/** What was made lately, bounded in bytes: the least recently used entry is dropped first. */
export class RecentlyUsed<Made> {
  private readonly maxBytes: number
  private readonly bytesOf: (made: Made) => number
  private readonly entries = new Map<string, Made>()
  private used = 0

  constructor(maxBytes: number, bytesOf: (made: Made) => number) {
    this.maxBytes = maxBytes
    this.bytesOf = bytesOf
  }

  get bytes(): number {
    return this.used
  }

  get(key: string): Made | undefined {
    const made = this.entries.get(key)
    if (made === undefined) return undefined
    this.entries.delete(key)
    this.entries.set(key, made)
    return made
  }

  keep(key: string, made: Made): void {
    this.drop(key)
    if (this.bytesOf(made) > this.maxBytes) return
    this.entries.set(key, made)
    this.used += this.bytesOf(made)
    for (const oldest of this.entries.keys()) {
      if (this.used <= this.maxBytes) return
      this.drop(oldest)
    }
  }

  private drop(key: string): void {
    const made = this.entries.get(key)
    if (made === undefined) return
    this.entries.delete(key)
    this.used -= this.bytesOf(made)
  }
}

type Making<Made> = Effect.Effect<Made, ApiError>

/**
 * Returns what is kept under a key, or what `work` makes, once for all who wait for it, and keeps it.
 * `waiting`: around the work of each of them.
 */
export const keptOrMade = <Made>(kept: RecentlyUsed<Made>) => {
  const flights = makeSingleFlight<Made, ApiError>()
  return (
    key: string,
    work: Making<Made>,
    waiting: (flight: Making<Made>) => Making<Made> = (flight) => flight,
  ): Making<Made> =>
    Effect.suspend(() => {
      const known = kept.get(key)
      if (known !== undefined) return Effect.succeed(known)
      const keeping = Effect.tap(work, (made) => Effect.sync(() => kept.keep(key, made)))
      return waiting(flights.run(key, keeping))
    })
}
