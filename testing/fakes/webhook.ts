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
  /** Emitted and committed events, the oldest first. */
  readonly events: readonly EmittedEvent[]
}

/** Keeps emitted events and delivers none. */
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
