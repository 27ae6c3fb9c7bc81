import { Effect } from "effect"
import type { Mail, Mailer } from "../../core/ports/mailer.ts"
import { whenCommitted } from "./transaction.ts"

export interface FakeMailer extends Mailer {
  /** In the order they were sent. */
  readonly sent: Mail[]
}

/** Keeps what it is told to send; in a real database's transaction at once, whatever becomes of that. */
export const fakeMailer = (): FakeMailer => {
  const sent: Mail[] = []
  return {
    sent,
    send: (mail, tx) => Effect.sync(() => whenCommitted(tx, () => void sent.push(mail))),
  }
}
