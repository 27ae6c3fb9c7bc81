import { Effect, type Scope } from "effect"
import { type PortError, repeat } from "../../core/index.ts"
import { nextAttemptOf, scheduleAttempt } from "./delivery/delivery-attempt.ts"
import type { WebhookDeps } from "./deps.ts"
import { makeDeliveryRows } from "./rows/delivery-rows.ts"

const dayMs = 86_400_000
/**
 * A pending delivery whose attempt is later than this has lost its job: the job died, or somebody
 * emptied the queue.
 */
export const overdueMs = 15 * 60_000

/**
 * Queues deliveries without a job again, or gives them up when their webhook was deleted; deletes
 * old ones. Returns the number of queued deliveries.
 */
export const upkeep = (deps: WebhookDeps): Effect.Effect<number, PortError> =>
  Effect.gen(function* () {
    const { database, clock, queue, settings } = deps
    const rows = makeDeliveryRows(database)
    const nowMs = clock.nowMs()
    let sent = 0
    for (const row of yield* rows.overdue(new Date(nowMs - overdueMs))) {
      if (row.url === null) yield* rows.giveUp(row.id)
      else {
        yield* scheduleAttempt(queue, nextAttemptOf(row), 0)
        sent++
      }
    }
    while ((yield* rows.sweep(new Date(nowMs - settings.keepDays * dayMs))) > 0);
    return sent
  })

/** At once and every ten minutes. */
export const keepUp = (deps: WebhookDeps): Effect.Effect<void, never, Scope.Scope> =>
  repeat(
    deps.log,
    {
      event: "webhook.upkeep_failed",
      message: "deliveries could not be maintained",
      everyMs: 10 * 60_000,
    },
    Effect.map(upkeep(deps), (deliveries) => {
      if (deliveries > 0)
        deps.log.warn("webhook.late_requeued", "late deliveries were queued anew", { deliveries })
    }),
  )
