import { Resolver } from "node:dns/promises"
import type { LookupFunction } from "node:net"
import { isPublicAddress } from "./public-address.ts"
import { notPublic } from "./refusal.ts"

export interface Address {
  readonly address: string
  readonly family: 4 | 6
}
export type ResolveName = (name: string) => Promise<readonly Address[]>

/**
 * Timeout (ms) and tries for each name server. A lookup may outlive the call, which has its own
 * timeout.
 */
const resolverOptions = { timeout: 2_000, tries: 2 }

/**
 * Queries the name servers itself. `dns.lookup` blocks one of libuv's few threads for each lookup:
 * a handful of names whose
 * servers don't respond would hold up all others. A new resolver each time, as the machine's name
 * servers may change.
 * `servers`: replaces the machine's.
 */
export const makeResolveName =
  (servers?: readonly string[]): ResolveName =>
  async (name) => {
    const resolver = new Resolver(resolverOptions)
    if (servers) resolver.setServers(servers)
    const [four, six] = await Promise.allSettled([resolver.resolve4(name), resolver.resolve6(name)])
    if (four.status === "rejected" && six.status === "rejected") throw four.reason
    const found = (given: typeof four, family: 4 | 6) =>
      given.status === "fulfilled" ? given.value.map((address) => ({ address, family })) : []
    return [...found(four, 4), ...found(six, 6)]
  }

export class PrivateAddress extends Error {}

/**
 * A lookup for `net.connect` that fails unless every address of the name is public. No second
 * lookup happens (DNS rebinding).
 */
export const guardedLookup =
  (resolve: ResolveName): LookupFunction =>
  (name, options, callback) => {
    const check = (found: readonly Address[]) => {
      const [first] = found
      if (!first || !found.every(({ address }) => isPublicAddress(address)))
        return callback(new PrivateAddress(notPublic), "")
      if (options.all) return callback(null, [...found])
      callback(null, first.address, first.family)
    }
    resolve(name).then(check, (error: NodeJS.ErrnoException) => callback(error, ""))
  }
