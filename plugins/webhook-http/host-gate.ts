import { Effect, Option, Semaphore } from "effect"

/** How many may stand in line for one host while there is room enough for all. */
const waitingPerHost = 100

export interface HostGateOptions {
  readonly perHost: number
  /** Places of the whole house. */
  readonly atOnce: number
}

/**
 * Deliveries to one host wait for each other. A host that is slow holds a few places and no more, the fewer the more crowded the house is,
 * so that there is always one for the others.
 */
export const makeHostGate = ({ perHost, atOnce }: HostGateOptions) => {
  const hosts = new Map<string, { inside: number; readonly places: Semaphore.Semaphore }>()
  let total = 0

  const enter = (host: string) => {
    const found = hosts.get(host) ?? { inside: 0, places: Semaphore.makeUnsafe(perHost) }
    const isCrowded = total * 2 >= atOnce
    if (found.inside >= (isCrowded ? perHost : perHost + waitingPerHost)) return undefined
    hosts.set(host, found)
    found.inside++
    total++
    return found
  }
  const leave = (host: string) => {
    const found = hosts.get(host)
    if (!found) return
    total--
    found.inside--
    if (found.inside === 0) hosts.delete(host)
  }

  /** None: the host has too many already; nothing was done. */
  return <A, E>(host: string, work: Effect.Effect<A, E>): Effect.Effect<Option.Option<A>, E> =>
    Effect.suspend(() => {
      const entered = enter(host)
      if (!entered) return Effect.succeed(Option.none())
      return entered.places
        .withPermits(1)(work)
        .pipe(Effect.map(Option.some), Effect.ensuring(Effect.sync(() => leave(host))))
    })
}
export type HostGate = ReturnType<typeof makeHostGate>
