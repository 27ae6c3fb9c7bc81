import { Resolver } from "node:dns/promises"
import type { LookupFunction } from "node:net"
import { isPublicAddress } from "./public-address.ts"
import { closed } from "./refusal.ts"

export interface Address {
  readonly address: string
  readonly family: 4 | 6
}
export type ResolveName = (name: string) => Promise<readonly Address[]>

/** Of each name server. A look-up may outlive the call, whose own limit ends it. */
const patience = { timeout: 2_000, tries: 2 }

/**
 * Asks the name servers itself. `dns.lookup` would have one of the process's few threads wait for the answer: a handful of names that nobody answers for, and all others stand in line behind them.
 * A resolver of its own each time: the machine's name servers may have changed. `servers`: others than the machine's.
 */
export const makeResolveName =
  (servers?: readonly string[]): ResolveName =>
  async (name) => {
    const resolver = new Resolver(patience)
    if (servers) resolver.setServers(servers)
    const [four, six] = await Promise.allSettled([resolver.resolve4(name), resolver.resolve6(name)])
    if (four.status === "rejected" && six.status === "rejected") throw four.reason
    const found = (given: typeof four, family: 4 | 6) =>
      given.status === "fulfilled" ? given.value.map((address) => ({ address, family })) : []
    return [...found(four, 4), ...found(six, 6)]
  }

export class ClosedAddress extends Error {}

/** For `net.connect`: every address of the name must be public, and only these are connected to. What a second look-up would say does not matter. */
export const guardedLookup =
  (resolve: ResolveName): LookupFunction =>
  (name, options, callback) => {
    const check = (found: readonly Address[]) => {
      const [first] = found
      if (!first || !found.every(({ address }) => isPublicAddress(address)))
        return callback(new ClosedAddress(closed), "")
      if (options.all) return callback(null, [...found])
      callback(null, first.address, first.family)
    }
    resolve(name).then(check, (error: NodeJS.ErrnoException) => callback(error, ""))
  }
