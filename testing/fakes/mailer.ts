import { Effect } from "effect"
import type { Mail, Mailer } from "../../core/ports/mailer.ts"
import { whenCommitted } from "./transaction.ts"

export interface FakeMailer extends Mailer {
  /** Sent mails, the oldest first. */
  readonly sent: Mail[]
}

/**
 * Keeps mails in memory. In a transaction of a real database it keeps them at once, even if that
 * rolls back.
 */
export const fakeMailer = (): FakeMailer => {
  const sent: Mail[] = []
  return {
    sent,
    send: (mail, tx) => Effect.sync(() => whenCommitted(tx, () => void sent.push(mail))),
  }
}
