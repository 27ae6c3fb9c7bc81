import type { Effect } from "effect"
import type { PortError } from "../errors.ts"
import type { Transaction } from "./transaction.ts"

export interface Mail {
  readonly to: string
  readonly subject: string
  readonly text: string
  readonly html: string
}

export interface Mailer {
  /** Queues the mail for delivery in the background, with retries; with `tx`, when it commits. */
  send(mail: Mail, tx?: Transaction): Effect.Effect<void, PortError>
}
