import type { Generated } from "kysely"

export interface WebhookTables {
  readonly webhook_registration: {
    /** In the order they were made. */
    readonly seq: Generated<bigint>
    readonly id: string
    readonly account: string
    readonly mode: "live" | "test"
    readonly url: string
    readonly events: readonly string[]
    readonly description: string | null
    readonly status: "active" | "disabled"
    /** Sealed, like the old one. */
    readonly secret: string
    readonly old_secret: string | null
    /** Until then both sign. */
    readonly old_secret_until: Date | null
    readonly created_at: Date
    /** The end of the last attempt of any delivery. */
    readonly last_delivery_at: Date | null
    /** Of that attempt; null when it succeeded. */
    readonly last_error: string | null
    /** The first failure since the last success. */
    readonly failing_since: Date | null
  }
  readonly webhook_delivery: {
    readonly seq: Generated<bigint>
    readonly id: string
    readonly webhook_id: string
    readonly event: string
    /** The exact text that is sent. */
    readonly body: string
    readonly state: "pending" | "succeeded" | "giveup"
    /** A test: one attempt. */
    readonly once: boolean
    /** Goes up with every redelivery: tickets of an earlier round are void. */
    readonly round: number
    /** Attempts of this round that have ended. */
    readonly tries: number
    readonly round_at: Date
    readonly next_attempt_at: Date | null
    /** `Attempt[]` as JSON. */
    readonly attempts: Generated<string>
    readonly created_at: Date
  }
}
