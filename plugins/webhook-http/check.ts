import { Effect } from "effect"
import { type ConsistencyCheck, type Finding, inPages, type PortError } from "../../core/index.ts"
import {
  attemptKeys,
  deliveryTerms,
  nextAttemptOf,
  scheduleAttempt,
} from "./delivery/delivery-attempt.ts"
import { isAttemptDue } from "./delivery/record-attempt.ts"
import type { WebhookDeps } from "./deps.ts"
import { makeDeliveryRows, type PendingRow } from "./rows/delivery-rows.ts"

const subjectOf = ({ id, webhook_id, owner }: PendingRow): string =>
  `delivery ${id} of webhook ${webhook_id}${owner === null ? "" : ` of account ${owner}`}`

/** An event may be emitted while its webhook is deleted; its first attempt then gives it up. */
const graceMs = 60_000

const queueAgain = (
  { queue, clock }: WebhookDeps,
  row: PendingRow,
): Effect.Effect<void, PortError> =>
  Effect.suspend(() =>
    scheduleAttempt(
      queue,
      nextAttemptOf(row),
      Math.max(0, (row.next_attempt_at?.getTime() ?? 0) - clock.nowMs()),
    ),
  )

/**
 * A delivery and its job change in one transaction, so a delivery that is unchanged before and
 * after the look into
 * the queue had its job in between, or has lost it.
 */
const withoutJob = (
  deps: WebhookDeps,
  rows: readonly PendingRow[],
): Effect.Effect<readonly Finding[], PortError> =>
  Effect.gen(function* () {
    const deliveries = makeDeliveryRows(deps.database)
    const held = yield* deps.queue.held(
      deliveryTerms,
      rows.flatMap((row) => attemptKeys(nextAttemptOf(row))),
    )
    const findings: Finding[] = []
    for (const row of rows) {
      if (attemptKeys(nextAttemptOf(row)).some((key) => held.has(key))) continue
      if (!isAttemptDue(nextAttemptOf(row), yield* deliveries.find(row.id))) continue
      findings.push({
        subject: subjectOf(row),
        problem: "it waits, but nothing in the queue will make its attempt",
        remedy: "it is queued again",
        repair: queueAgain(deps, row),
      })
    }
    return findings
  })

const withoutWebhook = (deps: WebhookDeps, row: PendingRow): Finding => ({
  subject: subjectOf(row),
  problem: "it waits, but its webhook is gone",
  remedy: "it is given up",
  repair: makeDeliveryRows(deps.database).giveUp(row.id),
})

export const deliveryCheck = (deps: WebhookDeps): ConsistencyCheck => ({
  name: "deliveries",
  about: "each delivery that waits has its webhook, and its next attempt in the queue",
  findings: (looked) => {
    const before = deps.clock.nowMs() - graceMs
    const judge = (rows: readonly PendingRow[]) => {
      const gone = rows.filter(
        ({ url, created_at }) => url === null && created_at.getTime() <= before,
      )
      const waiting = rows.filter(({ url }) => url !== null)
      return Effect.map(withoutJob(deps, waiting), (lost) => [
        ...gone.map((row) => withoutWebhook(deps, row)),
        ...lost,
      ])
    }
    return inPages(
      {
        page: (after: PendingRow | undefined, limit) =>
          makeDeliveryRows(deps.database).pending(after?.seq ?? 0n, limit),
        judge,
      },
      looked,
    )
  },
})
