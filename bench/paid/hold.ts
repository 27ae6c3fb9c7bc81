import type { OpenLoadResult } from "../deployment/load-client.ts"

/**
 * A rate is sustained when nearly all requests are answered, none fails, and no queue builds up.
 */
const leastShare = 0.99
const longestP95Ms = 100

export const holds = (perSecond: number, { achieved, p95Ms, failures }: OpenLoadResult): boolean =>
  failures === 0 && achieved >= leastShare * perSecond && p95Ms <= longestP95Ms

export const holdsInWords = `at least ${leastShare * 100} % answered in time, none failed, p95 under ${longestP95Ms} ms`

export interface Held {
  readonly perSecond: number
  readonly result: OpenLoadResult | undefined
}

/**
 * Finds the highest sustained rate: steps of 25 % up until one fails twice, then bisection until
 * the steps are below 4 %.
 * Twice, as one hiccup of the machine says nothing about the server.
 */
export const highestRate = async (
  from: number,
  offer: (perSecond: number) => Promise<OpenLoadResult>,
): Promise<Held> => {
  let best: Held = { perSecond: 0, result: undefined }
  const holdsAt = async (perSecond: number) => {
    for (let attempt = 0; attempt < 2; attempt++) {
      const result = await offer(perSecond)
      if (!holds(perSecond, result)) continue
      best = { perSecond, result }
      return true
    }
    return false
  }
  let rate = from
  while (await holdsAt(Math.round(rate))) rate *= 1.25
  // not even the first rate is sustained: step down until one is, or none is left
  while (best.perSecond === 0 && rate > 10) {
    rate /= 1.5
    await holdsAt(Math.round(rate))
  }
  let low = best.perSecond
  let high = low === Math.round(rate) ? rate * 1.5 : rate
  while (low > 0 && high / low > 1.04) {
    const middle = Math.round((low + high) / 2)
    if (await holdsAt(middle)) low = middle
    else high = middle
  }
  return best
}
