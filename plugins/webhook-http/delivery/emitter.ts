import { Effect } from "effect"
import {
  type Json,
  PortError,
  type Tenant,
  type Transaction,
  type Webhook,
} from "../../../core/index.ts"
import type { WebhookDeps } from "../deps.ts"
import { makeDeliveryRows, type NewDelivery } from "../rows/delivery-rows.ts"
import { makeRegistrationRows } from "../rows/registration-rows.ts"
import type { DeliveryRow } from "../rows/tables.ts"
import { nextAttemptOf, scheduleAttempt } from "./delivery-attempt.ts"

const maxBodyLength = 1_000_000

/** The exact text that is signed and sent with every attempt. */
export const bodyOf = (event: string, nowMs: number, data: Json): string =>
  JSON.stringify({ event, created: Math.floor(nowMs / 1000), data: data ?? null })

/** Stores a delivery and schedules its first attempt. */
export const enqueue = (
  deps: WebhookDeps,
  delivery: Omit<NewDelivery, "at">,
  tx: Transaction,
): Effect.Effect<DeliveryRow, PortError> =>
  Effect.gen(function* () {
    const row = yield* makeDeliveryRows(deps.database).insert(
      { ...delivery, at: new Date(deps.clock.nowMs()) },
      tx,
    )
    yield* scheduleAttempt(deps.queue, nextAttemptOf(row), 0, tx)
    return row
  })

export const makeEmitter = (deps: WebhookDeps): Webhook => {
  const store = (tenant: Tenant, event: string, body: string) => (tx: Transaction) =>
    Effect.gen(function* () {
      for (const id of yield* makeRegistrationRows(deps.database).subscribed(tenant, event, tx))
        yield* enqueue(
          deps,
          { id: deps.ids.make("whd-"), webhook_id: id, event, body, once: false },
          tx,
        )
    })
  return {
    emit: (tenant, event, data, tx) =>
      Effect.suspend(() => {
        const body = bodyOf(event, deps.clock.nowMs(), data)
        if (body.length > maxBodyLength)
          return Effect.fail(
            new PortError({
              port: "webhook",
              message: `an event has ${body.length} characters; ${maxBodyLength} are allowed`,
            }),
          )
        const stored = store(tenant, event, body)
        return tx ? stored(tx) : deps.database.transaction(stored)
      }),
  }
}
