import { Effect } from "effect"
import type { Tenant } from "../../core/caller.ts"
import type { Json } from "../../core/json.ts"
import type { Webhook } from "../../core/ports/webhook.ts"
import { whenCommitted } from "./transaction.ts"

export interface EmittedEvent {
  readonly tenant: Tenant
  readonly event: string
  readonly data: Json
}

export interface FakeWebhook extends Webhook {
  /** What was emitted and committed, in order. */
  readonly events: readonly EmittedEvent[]
}

/** Delivers to nobody; keeps what was emitted. */
export const fakeWebhook = (): FakeWebhook => {
  const events: EmittedEvent[] = []
  return {
    events,
    emit: (tenant, event, data, tx) =>
      Effect.sync(() => {
        const emitted = {
          tenant: { ...tenant },
          event,
          data: JSON.parse(JSON.stringify(data)) as Json,
        }
        whenCommitted(tx, () => void events.push(emitted))
      }),
  }
}
