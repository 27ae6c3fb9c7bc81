import { Cause, Effect } from "effect"
import type { PortError } from "../../core/index.ts"
import { nextAttemptOf, scheduleAttempt } from "./delivery/delivery-attempt.ts"
import type { WebhookDeps } from "./deps.ts"
import { makeDeliveryRows } from "./rows/delivery-rows.ts"

const dayMs = 86_400_000
/** A pending delivery whose attempt is later than this has lost its job: the job died, or somebody emptied the queue. */
export const overdueMs = 15 * 60_000

/** Queues deliveries without a job again, or gives them up when their webhook was deleted; deletes old ones. Returns the number of queued deliveries. */
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

/** Now and every ten minutes, until it is interrupted. */
export const keepUp = (deps: WebhookDeps): Effect.Effect<never> =>
  upkeep(deps).pipe(
    Effect.tap((deliveries) =>
      Effect.sync(
        () =>
          deliveries > 0 &&
          deps.log.warn("webhook.late_requeued", "late deliveries were queued anew", {
            deliveries,
          }),
      ),
    ),
    Effect.catchCause((cause) =>
      Effect.sync(() =>
        deps.log.warn("webhook.upkeep_failed", "deliveries could not be maintained", {
          cause: Cause.pretty(cause),
        }),
      ),
    ),
    Effect.andThen(Effect.sleep("10 minutes")),
    Effect.forever,
  )
