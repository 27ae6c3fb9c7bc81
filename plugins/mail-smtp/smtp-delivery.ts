import { Effect } from "effect"
import type { SendMailOptions } from "nodemailer"
import type { Address } from "./address.ts"
import { type Delivery, DeliveryFailed } from "./delivery.ts"
import { toMessage } from "./message.ts"
import type { SmtpServer } from "./smtp-url.ts"

export interface Timeouts {
  /** For the connection, the greeting, and each reply. */
  readonly silenceMs: number
  readonly attemptMs: number
}
const defaultTimeouts: Timeouts = { silenceMs: 10_000, attemptMs: 30_000 }

interface SmtpError {
  readonly message?: string
  readonly code?: string
  readonly command?: string
  readonly responseCode?: number
  readonly response?: string
}

/** Commands whose refusal concerns this mail, not this client. */
const mailCommands = new Set(["MAIL FROM", "RCPT TO", "DATA"])

/**
 * A server's reply may quote the mail, and so its token: only its codes are reported (RFC 5321, RFC
 * 3463). Errors of this side are reported in full.
 */
export const toFailure = (error: SmtpError): DeliveryFailed => {
  const { code = "", command = "", responseCode, response = "" } = error
  const isAnswer = responseCode !== undefined
  const extended = /^\d{3}[ -](\d\.\d{1,3}\.\d{1,3})\b/.exec(response)?.[1]
  const said = isAnswer
    ? `the server answered ${[responseCode, extended].filter(Boolean).join(" ")} to ${command || "the connection"}`
    : (error.message ?? String(error))
  const isInvalid = !isAnswer && ["EENVELOPE", "EMESSAGE"].includes(code)
  return new DeliveryFailed({
    reason: [said, code && `(${code})`].filter(Boolean).join(" "),
    isPermanent: isInvalid || (isAnswer && responseCode >= 500 && mailCommands.has(command)),
  })
}

/** Loaded with the first mail, as most servers start without one. */
const loadTransport = async (
  { host, port, secure, requireTLS, rejectUnauthorized, auth }: SmtpServer,
  silenceMs: number,
) => {
  const { createTransport } = await import("nodemailer")
  return createTransport({
    host,
    port,
    secure,
    requireTLS,
    tls: { rejectUnauthorized },
    ...(auth && { auth: { ...auth } }),
    connectionTimeout: silenceMs,
    greetingTimeout: silenceMs,
    socketTimeout: silenceMs,
    dnsTimeout: silenceMs,
  })
}

/** Opens a connection for each mail. Interruption closes it. */
export const smtpDelivery = (
  server: SmtpServer,
  from: Address,
  { silenceMs, attemptMs }: Timeouts = defaultTimeouts,
): Delivery => {
  let transport: ReturnType<typeof loadTransport> | undefined
  const tooSlow = new DeliveryFailed({
    reason: `the server took longer than ${attemptMs / 1000} s`,
    isPermanent: false,
  })
  return {
    deliver: (mail) =>
      Effect.tryPromise({
        try: async (signal) => {
          transport ??= loadTransport(server, silenceMs)
          // the types don't know `signal` yet
          const message = { ...toMessage(mail, from), signal } as SendMailOptions
          return (await transport).sendMail(message)
        },
        catch: (error) => toFailure(error as SmtpError),
      }).pipe(
        Effect.timeoutOrElse({ duration: attemptMs, orElse: () => Effect.fail(tooSlow) }),
        Effect.as("delivered" as const),
      ),
  }
}
