import { hash } from "node:crypto"
import type { Upstream } from "./upstream.ts"

/** How much more than its part of the load an upstream takes for a prompt whose head it has. */
const boundFactor = 1.25

/** A number between 0 and 1, the same for the same key and upstream in every process. */
const drawn = (key: string, { name }: Upstream): number =>
  (Number.parseInt(hash("sha256", `${key}\u0000${name}`).slice(0, 12), 16) + 1) / (2 ** 48 + 1)

/** Outstanding requests for its share, with one more. */
const loadOf = (upstream: Upstream): number => (upstream.outstanding + 1) / upstream.share()

const leastLoaded = (
  upstreams: readonly Upstream[],
  random: () => number,
): Upstream | undefined => {
  const least = Math.min(...upstreams.map(loadOf))
  const equal = upstreams.filter((upstream) => loadOf(upstream) === least)
  return equal[Math.floor(random() * equal.length)]
}

/**
 * Weighted rendezvous hashing (Thaler, Ravishankar 1998; weights as -w / ln h) with bounded loads
 * (Mirrokni, Thorup, Zadimoghaddam 2018): the first in the key's order that is not overloaded.
 */
const byAffinity = (upstreams: readonly Upstream[], key: string): Upstream | undefined => {
  const shares = upstreams.reduce((sum, upstream) => sum + upstream.share(), 0)
  const requests = upstreams.reduce((sum, { outstanding }) => sum + outstanding, 1)
  const room = (upstream: Upstream) =>
    Math.ceil((boundFactor * requests * upstream.share()) / shares)
  return upstreams
    .map((upstream) => ({ upstream, score: -upstream.share() / Math.log(drawn(key, upstream)) }))
    .sort((a, b) => b.score - a.score)
    .find(({ upstream }) => upstream.outstanding < room(upstream))?.upstream
}

/**
 * Returns the upstream for the next attempt: of those that are well, the one that `key` (the
 * digest of a prompt's head) belongs to, or the one with the least work. Where none is well, an
 * ejected one may be: to refuse everything would be worse. Undefined: all are paused.
 */
export const choose = (
  upstreams: readonly Upstream[],
  key: string | undefined,
  random: () => number = Math.random,
): Upstream | undefined => {
  const open = upstreams.filter((upstream) => !upstream.isPaused())
  const well = open.filter((upstream) => !upstream.isEjected())
  const among = well.length > 0 ? well : open
  return (key === undefined ? undefined : byAffinity(among, key)) ?? leastLoaded(among, random)
}
