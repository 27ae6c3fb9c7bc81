import { createHmac } from "node:crypto"
import { randomText, type Strings } from "../../../core/index.ts"
import type { Settings } from "../settings.ts"

const prefix = "whsec_"
export const makeSecret = (): string => prefix + randomText(32)

export interface Signed {
  readonly id: string
  readonly event: string
  readonly body: string
  readonly seconds: number
  /** The new secret first; two for a while after a rotation. */
  readonly secrets: readonly string[]
}

/** HMAC-SHA256 over `<t>.<body>` under the whole secret, in hex. */
const svc = ({ seconds, body, secrets }: Signed): Strings => {
  const signatures = secrets.map(
    (secret) => `v1=${createHmac("sha256", secret).update(`${seconds}.${body}`).digest("hex")}`,
  )
  return { "Svc-Signature": [`t=${seconds}`, ...signatures].join(",") }
}

/**
 * Standard Webhooks (standardwebhooks.com): the key is the text behind `whsec_`, decoded from
 * base64.
 */
const standard = ({ id, seconds, body, secrets }: Signed): Strings => {
  const keys = secrets.map((secret) => Buffer.from(secret.slice(prefix.length), "base64"))
  const signatures = keys.map(
    (key) => `v1,${createHmac("sha256", key).update(`${id}.${seconds}.${body}`).digest("base64")}`,
  )
  return {
    "webhook-id": id,
    "webhook-timestamp": String(seconds),
    "webhook-signature": signatures.join(" "),
  }
}

export const headersOf = (style: Settings["style"], signed: Signed): Strings => ({
  "Content-Type": "application/json",
  "User-Agent": "Svc-Webhooks/1.0",
  "Svc-Event": signed.event,
  ...(style === "svc" ? svc(signed) : standard(signed)),
})
