import ipaddr from "ipaddr.js"
import type { Client } from "../../../core/index.ts"
import type { Limit } from "./limiter.ts"

const minuteMs = 60_000

/** An IPv6 client usually has a whole /64, so limits count networks. */
const networkBytes = 8

/**
 * Returns the text by which a client's address is limited: an IPv4 address, or the /64 of an IPv6
 * address in hex.
 */
export const sourceOf = (client: Client | undefined): string => {
  const address = client?.address ?? ""
  if (!ipaddr.isValid(address)) return address
  const parsed = ipaddr.process(address)
  return parsed.kind() === "ipv4"
    ? parsed.toString()
    : Buffer.from(parsed.toByteArray().slice(0, networkBytes)).toString("hex")
}

/**
 * Count failures only: 10 a minute for an e-mail at an address; and 100 for all e-mails at it,
 * against trying one password on many accounts.
 */
export const loginLimits = (email: string, client: Client | undefined): readonly Limit[] => [
  { kind: "login", subject: [email, sourceOf(client)], max: 10, windowMs: minuteMs },
  { kind: "login-address", subject: [sourceOf(client)], max: 100, windowMs: minuteMs },
]

/**
 * Wrong codes of a second factor, beside the limits of sign-in: who knows the password and has many
 * addresses would else guess six digits within hours.
 */
export const codeLimits = (
  { id, email }: { readonly id: string; readonly email: string },
  client: Client | undefined,
): readonly Limit[] => [
  ...loginLimits(email, client),
  { kind: "code", subject: [id], max: 10, windowMs: 15 * minuteMs },
]

export const signupLimits = (client: Client | undefined): readonly Limit[] => [
  { kind: "signup", subject: [sourceOf(client)], max: 20, windowMs: minuteMs },
]

/** Requests for a mail, by address of the client. */
export const mailRequestLimits = (client: Client | undefined): readonly Limit[] => [
  { kind: "mail-request", subject: [sourceOf(client)], max: 20, windowMs: minuteMs },
]

/** Mails of one kind to one mailbox, so that nobody can flood a mailbox through this server. */
export const mailboxLimit = (
  kind: "verify" | "registered" | "reset" | "email",
  email: string,
): Limit => ({
  kind: `mail-${kind}`,
  subject: [email],
  max: 3,
  windowMs: 15 * minuteMs,
})

/** Audit records of an account's refused attempts, so that nobody can fill the audit log. */
export const auditLimits = (account: string): readonly Limit[] => [
  { kind: "trace", subject: [account], max: 60, windowMs: minuteMs },
]
