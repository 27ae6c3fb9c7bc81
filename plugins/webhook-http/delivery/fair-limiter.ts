import { Effect, Option, Semaphore } from "effect"

/**
 * The number of deliveries that may wait for one webhook's permits while less than half of all
 * permits are taken.
 */
const maxWaiting = 100

export interface FairLimiterOptions {
  /** Permits of one webhook: its concurrent deliveries. */
  readonly perWebhook: number
  /** Permits of the whole process. */
  readonly atOnce: number
}

/**
 * A bulkhead: deliveries to one webhook share its few permits, so a slow receiver does not delay
 * the others.
 * Once half of all permits are taken, nobody may wait any more; it takes dozens of slow receivers
 * to use up the rest.
 */
export const makeFairLimiter = ({ perWebhook, atOnce }: FairLimiterOptions) => {
  const webhooks = new Map<string, { entered: number; readonly permits: Semaphore.Semaphore }>()
  let total = 0

  const enter = (webhook: string) => {
    const bulkhead = webhooks.get(webhook) ?? {
      entered: 0,
      permits: Semaphore.makeUnsafe(perWebhook),
    }
    const isCrowded = total * 2 >= atOnce
    if (bulkhead.entered >= (isCrowded ? perWebhook : perWebhook + maxWaiting)) return undefined
    webhooks.set(webhook, bulkhead)
    bulkhead.entered++
    total++
    return bulkhead
  }
  const leave = (webhook: string) => {
    const bulkhead = webhooks.get(webhook)
    if (!bulkhead) return
    total--
    bulkhead.entered--
    if (bulkhead.entered === 0) webhooks.delete(webhook)
  }

  /**
   * Returns None without running `work` when too many deliveries of the webhook run or wait
   * already.
   */
  return <A, E>(webhook: string, work: Effect.Effect<A, E>): Effect.Effect<Option.Option<A>, E> =>
    Effect.suspend(() => {
      const bulkhead = enter(webhook)
      if (!bulkhead) return Effect.succeed(Option.none())
      return bulkhead.permits
        .withPermits(1)(work)
        .pipe(Effect.map(Option.some), Effect.ensuring(Effect.sync(() => leave(webhook))))
    })
}
