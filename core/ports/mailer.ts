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
  /** Takes the mail over and delivers it in the background, trying again; with `tx` only if that commits. */
  send(mail: Mail, tx?: Transaction): Effect.Effect<void, PortError>
}
