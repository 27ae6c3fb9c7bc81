import type { SendMailOptions } from "nodemailer"
import type { Mail } from "../../core/index.ts"
import type { Address } from "./address.ts"

/** A mail on its way out. */
export interface Outgoing {
  readonly id: string
  readonly mail: Mail
  readonly createdMs: number
}

/** The Message-ID is that of the row: what is delivered twice, after a crash, can be told to be the same. */
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
