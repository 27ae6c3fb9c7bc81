import ipaddr from "ipaddr.js"
import type { Client } from "../../../core/index.ts"
import type { Limit } from "./limiter.ts"

const minuteMs = 60_000

/** Whoever has an IPv6 address has 2^64 of them. */
const networkBytes = 8

/** What stands for a client's address. */
export const sourceOf = (client: Client | undefined): string => {
  const address = client?.address ?? ""
  if (!ipaddr.isValid(address)) return address
  const parsed = ipaddr.process(address)
  return parsed.kind() === "ipv4"
    ? parsed.toString()
    : Buffer.from(parsed.toByteArray().slice(0, networkBytes)).toString("hex")
}

/** Failures only: 10 a minute of a person at an address; and, looser, of all persons at it, against trying one password on many. */
export const loginLimits = (email: string, client: Client | undefined): readonly Limit[] => [
  { kind: "login", subject: [email, sourceOf(client)], max: 10, windowMs: minuteMs },
  { kind: "login-address", subject: [sourceOf(client)], max: 100, windowMs: minuteMs },
]

export const signupLimits = (client: Client | undefined): readonly Limit[] => [
  { kind: "signup", subject: [sourceOf(client)], max: 20, windowMs: minuteMs },
]

/** Requests for a mail, by where they come from. */
export const mailRequestLimits = (client: Client | undefined): readonly Limit[] => [
  { kind: "mail-request", subject: [sourceOf(client)], max: 20, windowMs: minuteMs },
]

/** Mails of one kind to one mailbox, so that nobody can be flooded through us. */
export const mailboxLimit = (kind: "verify" | "registered" | "reset", email: string): Limit => ({
  kind: `mail-${kind}`,
  subject: [email],
  max: 3,
  windowMs: 15 * minuteMs,
})

/** Traces of one account's refused attempts, so that nobody can fill the audit log. */
export const auditLimits = (account: string): readonly Limit[] => [
  { kind: "trace", subject: [account], max: 60, windowMs: minuteMs },
]
