import { Effect, Option, Semaphore } from "effect"

/** How many may stand in line for one webhook while there is room enough for all. */
const waitingPerWebhook = 100

export interface WebhookGateOptions {
  readonly perWebhook: number
  /** Permits of the whole server. */
  readonly atOnce: number
}

/**
 * Deliveries to one webhook wait for each other. One that is slow holds a few places and no more, the fewer the more crowded the house is:
 * it takes dozens of slow ones at once until nothing is left for the others.
 */
export const makeWebhookGate = ({ perWebhook, atOnce }: WebhookGateOptions) => {
  const webhooks = new Map<string, { inside: number; readonly places: Semaphore.Semaphore }>()
  let total = 0

  const enter = (webhook: string) => {
    const found = webhooks.get(webhook) ?? { inside: 0, places: Semaphore.makeUnsafe(perWebhook) }
    const isCrowded = total * 2 >= atOnce
    if (found.inside >= (isCrowded ? perWebhook : perWebhook + waitingPerWebhook)) return undefined
    webhooks.set(webhook, found)
    found.inside++
    total++
    return found
  }
  const leave = (webhook: string) => {
    const found = webhooks.get(webhook)
    if (!found) return
    total--
    found.inside--
    if (found.inside === 0) webhooks.delete(webhook)
  }

  /** None: the webhook has too many already; nothing was done. */
  return <A, E>(webhook: string, work: Effect.Effect<A, E>): Effect.Effect<Option.Option<A>, E> =>
    Effect.suspend(() => {
      const entered = enter(webhook)
      if (!entered) return Effect.succeed(Option.none())
      return entered.places
        .withPermits(1)(work)
        .pipe(Effect.map(Option.some), Effect.ensuring(Effect.sync(() => leave(webhook))))
    })
}
