import type { Generated, Selectable } from "kysely"

/** What is kept of an attempt that has ended. */
export interface AttemptRecord {
  /** When it began, in Unix seconds. */
  readonly at: number
  readonly status_code: number | null
  /** Null when it succeeded. */
  readonly error: string | null
  readonly duration_ms: number
  readonly response_body: string | null
}

export interface WebhookTables {
  readonly webhook_registration: {
    /** The order of creation. */
    readonly seq: Generated<bigint>
    readonly id: string
    readonly account: string
    readonly mode: "live" | "test"
    readonly url: string
    readonly events: readonly string[]
    readonly description: string | null
    readonly status: "active" | "disabled"
    /** Encrypted, like the old one. */
    readonly secret: string
    readonly old_secret: string | null
    /** Until then both secrets sign. */
    readonly old_secret_until: Date | null
    readonly created_at: Date
    /** When the last attempt of any delivery ended. */
    readonly last_delivery_at: Date | null
    /** The error of that attempt; null when it succeeded. */
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
    /** A test has one attempt. */
    readonly once: boolean
    /** Goes up with every redelivery: queued attempts of an earlier round are void. */
    readonly round: number
    /** The number of attempts of this round that have ended. */
    readonly tries: number
    readonly round_at: Date
    readonly next_attempt_at: Date | null
    /** `AttemptRecord[]` as JSON. */
    readonly attempts: Generated<string>
    readonly created_at: Date
  }
}

export type RegistrationRow = Selectable<WebhookTables["webhook_registration"]>
export type DeliveryRow = Selectable<WebhookTables["webhook_delivery"]>

export const attemptsOf = (row: Pick<DeliveryRow, "attempts">): readonly AttemptRecord[] =>
  JSON.parse(row.attempts) as readonly AttemptRecord[]
