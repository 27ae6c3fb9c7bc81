import type { SendMailOptions } from "nodemailer"
import type { Mail } from "../../core/index.ts"
import type { Address } from "./address.ts"

/** A mail to deliver. */
export interface Outgoing {
  readonly id: string
  readonly mail: Mail
  readonly createdMs: number
}

/**
 * The Message-ID is the id of the row, so that receivers recognize a mail that is delivered twice
 * after a crash.
 */
export const toMessage = ({ id, mail, createdMs }: Outgoing, from: Address): SendMailOptions => ({
  from: { ...from },
  to: { name: "", address: mail.to },
  subject: mail.subject,
  text: mail.text,
  html: mail.html,
  date: new Date(createdMs),
  messageId: `<${id}@${from.address.slice(from.address.lastIndexOf("@") + 1)}>`,
  headers: { "Auto-Submitted": "auto-generated" },
  disableFileAccess: true,
  disableUrlAccess: true,
})
